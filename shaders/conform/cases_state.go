package conform

import (
	"leat/internal/selftest"
	"leat/shaders/ref"
)

// stateCases are the ops with a state: ssm_conv, gated_delta_net, ssm_scan and ssd_scan.
func stateCases() []selftest.Case {
	cases := []selftest.Case{
		selftest.SSMConv(1, 1, 4, 0, false, false), selftest.SSMConv(2, 64, 4, 0, false, false), selftest.SSMConv(33, 100, 4, 3, false, false), selftest.SSMConv(5, 65, 2, 0, false, false),
		selftest.SSMConv(9, 7, 1, 0, false, false), selftest.SSMConv(40, 1000, 3, 0, false, false), selftest.SSMConv(33, 100, 4, 3, true, false), selftest.SSMConv(9, 100, 3, 0, true, true),
		selftest.SSMConv(9, 65, 3, 0, false, true), selftest.SSMConvSameBits(9, 100, 4),
	}
	for _, d := range []ref.DeltaNet{
		{KeyHeads: 1, Heads: 1, Head: 8}, {KeyHeads: 2, Heads: 4, Head: 32}, {KeyHeads: 2, Heads: 4, Head: 32, Tiled: true},
		{KeyHeads: 2, Heads: 6, Head: 128, Tiled: true}, {KeyHeads: 1, Heads: 2, Head: 256}, {KeyHeads: 3, Heads: 3, Head: 100},
	} {
		cases = append(cases, selftest.DeltaNet(d, 2, 0, false), selftest.DeltaNet(d, 17, 4, true))
	}
	for _, d := range []ref.DeltaNet{{KeyHeads: 1, Heads: 1, Head: 8, ByChannel: true}, {KeyHeads: 4, Heads: 4, Head: 128, ByChannel: true}, {KeyHeads: 2, Heads: 2, Head: 100, ByChannel: true}, {KeyHeads: 2, Heads: 2, Head: 32, ByChannel: true}} {
		cases = append(cases, selftest.DeltaNet(d, 2, 0, false), selftest.DeltaNet(d, 17, 4, false))
	}
	for _, channels := range []int{1, 65, 200} {
		for _, state := range []int{1, 16, 64} {
			cases = append(cases, selftest.SSMScan(17, channels, state, 4, false), selftest.SSMScan(2, channels, state, 0, true))
		}
	}
	for _, m := range []ref.SSD{
		{Heads: 1, Head: 1, Groups: 1, State: 1}, {Heads: 8, Head: 16, Groups: 2, State: 16}, {Heads: 3, Head: 65, Groups: 1, State: 33}, {Heads: 4, Head: 64, Groups: 2, State: 128},
		{Heads: 2, Head: 130, Groups: 2, State: 256}, {Heads: 8, Head: 16, Groups: 2, State: 16, DeltaMin: 0.001},
	} {
		cases = append(cases, selftest.SSDScan(m, 17, 4, false), selftest.SSDScan(m, 2, 0, true))
	}
	return append(cases, selftest.DeltaNetSameBits(ref.DeltaNet{KeyHeads: 2, Heads: 4, Head: 64}, 7), selftest.DeltaNetSameBits(ref.DeltaNet{KeyHeads: 2, Heads: 2, Head: 64, ByChannel: true}, 7),
		selftest.SSMScanSameBits(7, 100, 16), selftest.SSDScanSameBits(ref.SSD{Heads: 4, Head: 24, Groups: 2, State: 32}, 7))
}
