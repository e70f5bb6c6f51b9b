package pace

import (
	"testing"
	"testing/fstest"
)

func TestHwmon(t *testing.T) {
	const pci = "0000:03:00.0"
	dir := "bus/pci/devices/" + pci + "/hwmon/hwmon4/"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  *Reading
		slow  float64
		by    string
	}{
		{"amdgpu, discrete", map[string]string{
			"name": "amdgpu\n", "temp1_label": "edge\n", "temp1_input": "61000\n", "temp1_crit": "100000\n",
			"temp2_label": "junction\n", "temp2_input": "74000\n", "temp2_crit": "110000\n",
			"temp3_label": "mem\n", "temp3_input": "80000\n", "power1_average": "212000000\n", "freq1_input": "2480000000\n",
		}, &Reading{TempC: 74, PowerW: 212, ClockMHz: 2480}, 110, "amdgpu"},
		{"amdgpu, integrated", map[string]string{
			"name": "amdgpu\n", "temp1_label": "edge\n", "temp1_input": "55000\n", "power1_input": "35072000\n",
		}, &Reading{TempC: 55, PowerW: 35.072}, 0, "amdgpu"},
		{"another driver", map[string]string{"name": "xe\n", "temp2_label": "pkg\n", "temp2_input": "48000\n", "temp3_label": "vram\n", "temp3_input": "60000\n"}, &Reading{TempC: 48}, 0, "xe"},
		{"no temperature", map[string]string{"name": "i915\n", "energy1_input": "1\n"}, nil, 0, ""},
		{"nonsense", map[string]string{"name": "amdgpu\n", "temp1_input": "hot\n"}, nil, 0, ""},
		{"nothing", nil, nil, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{"bus/pci/devices/0000:04:00.0/hwmon/hwmon0/temp1_input": {Data: []byte("99000\n")}}
			for name, text := range tt.files {
				fsys[dir+name] = &fstest.MapFile{Data: []byte(text)}
			}
			h := newHwmon(fsys, pci)
			if tt.want == nil {
				if h != nil {
					t.Fatalf("found %+v", h)
				}
				return
			}
			if h == nil {
				t.Fatal("no sensor found")
			}
			got, err := h.Read()
			if err != nil || got != *tt.want || h.SlowdownC() != tt.slow || h.Name() != tt.by {
				t.Errorf("%s: %+v, %v, slows at %g; wanted %s: %+v, %g", h.Name(), got, err, h.SlowdownC(), tt.by, *tt.want, tt.slow)
			}
			delete(fsys, dir+"temp1_input")
			delete(fsys, dir+"temp2_input")
			if _, err := h.Read(); err == nil {
				t.Error("a sensor that is gone was read")
			}
		})
	}
}
