package tiny

// random is a SplitMix64 generator. It uses integers only, so its numbers are the same on every platform.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// bell returns a nearly normal number with mean 0 and deviation 1: the sum of eight 16-bit integers. The only
// floating-point operation is one multiplication, so nothing can be fused.
func (r *random) bell() float64 {
	const deviation = 53509.92 // of a sum of eight uniform 16-bit integers
	sum := int64(0)
	for range 2 {
		z := r.next()
		for range 4 {
			sum += int64(z&0xffff) - 0x8000
			z >>= 16
		}
	}
	return float64(sum) * (1 / deviation)
}
