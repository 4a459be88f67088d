package patch

func repair(data []byte, o Options, r *Refusal) []byte { return nil }
