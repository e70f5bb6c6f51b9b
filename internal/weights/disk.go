package weights

import (
	"errors"

	"leat/decompose/pack"
	"leat/vk/file"
)

// disk is a model's files, open for direct reads.
type disk struct {
	files  []*file.File // by index in the model
	drives int          // largest number of drives that a file is striped over
	stripe int64        // size of a stripe: bytes that follow each other on one drive; 0: files are not striped
}

// open opens the files, and fails if they are not as they were when the model was opened. After an error the caller closes d.
func (d *disk) open(m *pack.Model) error {
	if m.Manifest != nil && m.Manifest.Stripe != nil {
		d.stripe = m.Manifest.Stripe.Bytes
	}
	for i, path := range m.Files {
		paths := []string{path}
		if i < len(m.Parts) {
			paths = m.Parts[i]
		}
		d.drives = max(d.drives, len(paths))
		f, err := file.OpenStriped(paths, d.stripe)
		if err != nil {
			return err
		}
		d.files = append(d.files, f)
		if err := f.Is(m.Infos[i]...); err != nil {
			return err
		}
	}
	return nil
}

// direct reports whether all files are read past the page cache.
func (d *disk) direct() bool {
	for _, f := range d.files {
		if !f.Direct() {
			return false
		}
	}
	return true
}

// close closes the files. No read of them may be under way.
func (d *disk) close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	d.files = nil
	return errors.Join(errs...)
}
