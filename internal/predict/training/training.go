package training

import "math"

// Layer is one layer in a step of fine-tuning: an adapter is trained over frozen weights, and some of the model's layers are streamed in
// every step. All layers are alike.
//
// A step computes three times as much as a forward pass: the forward pass, the same again
// to get back activations that were not kept, and the gradients of the activations. (Frozen
// weights need no gradients.) A streamed layer's weights are transferred twice: once for the forward pass,
// and once for the backward pass, which does the second and the third computation. A pass can hide its own transfers only.
type Layer struct {
	Bytes         float64 // bytes of the layer's weights, all experts included
	ActiveParams  float64 // parameters that one token uses
	FlopsPerSec   float64 // operations that the device computes a second
	BytesPerSec   float64 // rate of transfers of weights to the device, see [WeightPath.BytesPerSec]
	StreamedShare float64 // the share of the model's layers that are streamed

	// OneTransfer hides one transfer behind all three computations, as
	// nvme-weight-streaming.md does. It is right only if the weights of a whole step fit somewhere
	// between forward and backward pass.
	OneTransfer bool
}

// flopsPerParam is a multiplication and an addition for each parameter and token.
const flopsPerParam = 2

// ForwardSeconds is the time to compute the layer's forward pass, a third of a step's computation.
func (l *Layer) ForwardSeconds(tokens float64) float64 {
	return tokens * flopsPerParam * l.ActiveParams / l.FlopsPerSec
}

// ComputeSeconds is the time to compute the layer's forward and backward pass.
func (l *Layer) ComputeSeconds(tokens float64) float64 { return 3 * l.ForwardSeconds(tokens) }

// TransferSeconds is the time of one transfer of the layer's weights.
func (l *Layer) TransferSeconds() float64 { return l.Bytes / l.BytesPerSec }

// StepSeconds is the time that the layer takes of a step, on average over streamed and resident layers. Streamed layers are spread evenly,
// so each transfer is hidden behind the computation of 1/StreamedShare layers.
func (l *Layer) StepSeconds(tokens float64) float64 {
	c, x := l.ForwardSeconds(tokens), l.StreamedShare*l.TransferSeconds()
	if l.OneTransfer {
		return max(3*c, x)
	}
	return max(c, x) + max(2*c, x)
}

// Overhead is the time of a step beyond its computation, as a share of the computation: 0.5 means that the step takes half as long again.
func (l *Layer) Overhead(tokens float64) float64 {
	return l.StepSeconds(tokens)/l.ComputeSeconds(tokens) - 1
}

// HiddenFrom is the least number of tokens in a step with which computation hides all transfers.
func (l *Layer) HiddenFrom() float64 {
	n := l.StreamedShare * l.TransferSeconds() / l.ForwardSeconds(1)
	if l.OneTransfer {
		n /= 3
	}
	return n
}

// BytesPerFlop is bytes to transfer for each floating-point operation of a token: the larger, the harder the model is to stream.
func (l *Layer) BytesPerFlop() float64 { return l.Bytes / (3 * flopsPerParam * l.ActiveParams) }

// WeightPath is the way that weights take to a device: from striped drives, or from pinned RAM, over the link.
type WeightPath struct {
	DriveBytesPerSec float64 // one drive's rate
	Drives           int     // number of striped drives
	Sharing          int     // devices that read from the same drives at the same time; 0: 1
	LinkBytesPerSec  float64 // the link's rate into one device
	Pinned           bool    // the weights lie in pinned RAM: no drive is read
	P2P              bool    // drives write to the device directly, without the CPU
	P2PBytesPerSec   float64 // the most that P2P reaches; 0: LinkBytesPerSec
}

// BytesPerSec is the rate of the slowest part of the path: the link (with P2P, the rate that P2P reaches) or, if the weights
// are not pinned, the drives.
func (p WeightPath) BytesPerSec() float64 {
	link := p.LinkBytesPerSec
	if p.P2P && p.P2PBytesPerSec > 0 {
		link = p.P2PBytesPerSec
	}
	if p.Pinned {
		return p.LinkBytesPerSec
	}
	return min(link, p.DriveBytesPerSec*float64(p.Drives)/float64(max(1, p.Sharing)))
}

// DrivesToFill is the number of drives that are together as fast as the link.
func (p WeightPath) DrivesToFill() int { return int(math.Ceil(p.LinkBytesPerSec / p.DriveBytesPerSec)) }

// DeviceLayers counts the layers of one device of a pipeline.
type DeviceLayers struct {
	Layers   int // all layers of the device
	Resident int // layers whose weights stay in the device's memory
	Streamed int // layers whose weights are streamed
}

// StreamedShare is the share of the device's layers that are streamed.
func (d DeviceLayers) StreamedShare() float64 {
	if d.Layers == 0 {
		return 0
	}
	return float64(d.Streamed) / float64(d.Layers)
}

// SplitLayers splits a model's layers evenly over the devices of a pipeline, and says how many of one device's layers stay in its
// memory of deviceBytes. Adapter, optimizer and activations take reserve bytes; a ring of two layers takes room where layers are streamed.
func SplitLayers(layers int, layerBytes, deviceBytes, reserve float64, devices int) DeviceLayers {
	d := DeviceLayers{Layers: (layers + devices - 1) / devices}
	room := deviceBytes - reserve
	if float64(d.Layers)*layerBytes <= room {
		d.Resident = d.Layers
		return d
	}
	d.Resident = max(0, min(d.Layers, int((room-2*layerBytes)/layerBytes)))
	d.Streamed = d.Layers - d.Resident
	return d
}
