package mlc

// Version is part of the names of cached packages. Raise it when Write changes its output.
const Version = 3
