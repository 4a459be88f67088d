package sandbox

import "errors"

func (o order) mount() error { return errors.New("not yet") }
