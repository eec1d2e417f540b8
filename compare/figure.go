package compare

// notPositive is one's where launches suffice, and a ratio of what some of them have makes no sense.
const notPositive = "not all values above 0"

// shared is one's where launches were not each repetition's own.
const shared = "repetitions share launches"
