package predict

import "math"

// Training is the theoretical model of fine-tuning an adapter over frozen weights of which a
// part streams in every step. Time is of one layer; layers are alike.
//
// A step computes three times as much as a forward pass: forward, the forward again that
// makes up for activations that were not kept, and the gradients of the activations. (The
// frozen weights themselves need none.) The weights come twice: once forward, and once
// backward for the other two. Nothing of one half of a step can hide what the other waits
// for, but at the turn.
type Training struct {
	Layers       int
	LayerBytes   float64 // weights of a layer, all experts included
	ActiveParams float64 // parameters of a layer that one token uses
	FlopsPerSec  float64 // compute
	BytesPerSec  float64 // transfers of streamed layers, see [Path.BytesPerSec]
	Streamed     float64 // fraction of the layers that is streamed

	// OneTransfer counts one transfer against all three computes, as
	// nvme-weight-streaming.md does: only right if the weights of a whole step fit somewhere
	// between its halves.
	OneTransfer bool
}

// flopsPerParam is a multiplication and an addition for each parameter and token.
const flopsPerParam = 2

// ForwardSeconds is the compute of a layer's forward pass, a third of a step's.
func (t *Training) ForwardSeconds(tokens float64) float64 {
	return tokens * flopsPerParam * t.ActiveParams / t.FlopsPerSec
}

// ComputeSeconds is all compute of a layer in a step.
func (t *Training) ComputeSeconds(tokens float64) float64 { return 3 * t.ForwardSeconds(tokens) }

// TransferSeconds is one transfer of a layer.
func (t *Training) TransferSeconds() float64 { return t.LayerBytes / t.BytesPerSec }

// LayerSeconds is the time of a layer in a step, transfers included. With a fraction of the layers streamed, evenly spread,
// each transfer is hidden by 1/fraction layers of compute.
func (t *Training) LayerSeconds(tokens float64) float64 {
	c, x := t.ForwardSeconds(tokens), t.Streamed*t.TransferSeconds()
	if t.OneTransfer {
		return max(3*c, x)
	}
	return max(c, x) + max(2*c, x)
}

// Overhead is how much longer a step takes than its compute: 0.5 is half as long again.
func (t *Training) Overhead(tokens float64) float64 {
	return t.LayerSeconds(tokens)/t.ComputeSeconds(tokens) - 1
}

// HiddenFrom is the number of tokens in a step from which transfers cost nothing.
func (t *Training) HiddenFrom() float64 {
	n := t.Streamed * t.TransferSeconds() / t.ForwardSeconds(1)
	if t.OneTransfer {
		n /= 3
	}
	return n
}

// BytesPerFlop says how hard a model is to stream: it is a machine's bytes over flops that
// hide all of it.
func (t *Training) BytesPerFlop() float64 { return t.LayerBytes / (3 * flopsPerParam * t.ActiveParams) }

// Path is how weights come to the device.
type Path struct {
	DriveBytesPerSec float64 // one drive
	Drives           int     // striped
	Sharing          int     // devices that read from the same drives; 0: 1
	LinkBytesPerSec  float64 // into one device
	Pinned           bool    // from RAM: no drive in the loop
	P2P              bool    // from the drive to the device, past the CPU
	P2PBytesPerSec   float64 // the most that way; 0: as the link
}

// BytesPerSec is what the path's narrowest part lets through.
func (p Path) BytesPerSec() float64 {
	link := p.LinkBytesPerSec
	if p.P2P && p.P2PBytesPerSec > 0 {
		link = p.P2PBytesPerSec
	}
	if p.Pinned {
		return p.LinkBytesPerSec
	}
	return min(link, p.DriveBytesPerSec*float64(p.Drives)/float64(max(1, p.Sharing)))
}

// DrivesToFill is how many drives make the disk as fast as memory.
func (p Path) DrivesToFill() int { return int(math.Ceil(p.LinkBytesPerSec / p.DriveBytesPerSec)) }

// Fit is how many of a device's layers stay in it.
type Fit struct {
	Layers   int // of this device: the model's by the number of devices
	Resident int
	Streamed int
}

// Fraction is the part of the layers that streams.
func (f Fit) Fraction() float64 {
	if f.Layers == 0 {
		return 0
	}
	return float64(f.Streamed) / float64(f.Layers)
}

// FitLayers deals the layers to devices, one after another as a pipeline, and says what fits
// one of them: reserve is what training takes beside the weights, and two layers are the ring
// of those that stream.
func FitLayers(layers int, layerBytes, deviceBytes, reserve float64, devices int) Fit {
	f := Fit{Layers: (layers + devices - 1) / devices}
	room := deviceBytes - reserve
	if float64(f.Layers)*layerBytes <= room {
		f.Resident = f.Layers
		return f
	}
	f.Resident = max(0, min(f.Layers, int((room-2*layerBytes)/layerBytes)))
	f.Streamed = f.Layers - f.Resident
	return f
}
