package plan

// Bare is a plan without where it is from.
func Bare(p Plan) Plan {
	p.from = source{}
	return p
}
