package mlc

// Version goes into the names of cached packages: it is raised when Write would lay out the same model differently.
const Version = 2
