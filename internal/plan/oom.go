package plan

// ChecksOOM tells whether cells that would run out of memory are refused: they are unless the plan says otherwise.
func (p Plan) ChecksOOM() bool { return p.CheckOOM == nil || *p.CheckOOM }
