package shaders

import "fmt"

// stateFamilies are the kernels of layers with a state.
var stateFamilies = []family{
	{op: "ssm_conv", args: SSMConvArgs{}, extra: []string{fmt.Sprintf("MAX_TAPS=%d", MaxTaps)}},
	{op: "ssm_scan", args: SSMScanArgs{}, spec: []SpecConst{{"STATE", 16, MaxScanState}}},
	{op: "ssd_scan", args: SSDScanArgs{}, extra: []string{fmt.Sprintf("MAX_STATE=%d", MaxState)}},
	{op: "gated_delta_net", args: GatedDeltaNetArgs{}, extra: []string{fmt.Sprintf("MAX_STATE=%d", MaxState)}},
}
