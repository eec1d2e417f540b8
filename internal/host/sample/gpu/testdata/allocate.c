/* Takes memory of a GPU when it is told to, by CUDA's driver, which it loads: nothing of CUDA is needed to build it.
     cc -o allocate allocate.c -ldl && CUDA_VISIBLE_DEVICES=GPU-… ./allocate
   It takes of the first GPU that it sees. It prints "ready" when it has a context, then an "ok" for each line it reads: "alloc BYTES" (taken
   and written), "free" (all that was taken so). It ends when its input does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
static int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*current)(void *);
static int (*alloc)(address *, size_t), (*fill)(address, unsigned char, size_t), (*give)(address), (*finish)(void);
static int (*name_of)(int, const char **);

static void *symbol(void *lib, const char *name) {
	void *s = dlsym(lib, name);
	if (!s) {
		fprintf(stderr, "libcuda.so.1 has no %s\n", name);
		exit(2);
	}
	return s;
}

static void must(int result, const char *what) {
	const char *name = "";
	if (!result)
		return;
	if (name_of && name_of(result, &name))
		name = "";
	fprintf(stderr, "%s: CUDA's error %d %s\n", what, result, name);
	exit(1);
}

static address take(size_t bytes) {
	address at;
	must(alloc(&at, bytes), "cuMemAlloc");
	must(fill(at, 1, bytes), "cuMemsetD8");
	must(finish(), "cuCtxSynchronize");
	return at;
}

int main(void) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context;
	if (!lib) {
		fprintf(stderr, "%s: this needs a machine with an NVIDIA GPU and its driver\n", dlerror());
		return 2;
	}
	*(void **)&init = symbol(lib, "cuInit");
	*(void **)&get = symbol(lib, "cuDeviceGet");
	*(void **)&retain = symbol(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&current = symbol(lib, "cuCtxSetCurrent");
	*(void **)&alloc = symbol(lib, "cuMemAlloc_v2");
	*(void **)&fill = symbol(lib, "cuMemsetD8_v2");
	*(void **)&give = symbol(lib, "cuMemFree_v2");
	*(void **)&finish = symbol(lib, "cuCtxSynchronize");
	*(void **)&name_of = dlsym(lib, "cuGetErrorName");

	int device;
	must(init(0), "cuInit");
	must(get(&device, 0), "cuDeviceGet");
	must(retain(&context, device), "cuDevicePrimaryCtxRetain");
	must(current(context), "cuCtxSetCurrent");
	take(32 << 20); /* what the driver itself needs for this it has from now on; kept */
	printf("ready\n");
	fflush(stdout);

	char line[64];
	address held[64];
	int n = 0;
	while (fgets(line, sizeof line, stdin)) {
		unsigned long long bytes;
		if (sscanf(line, "alloc %llu", &bytes) == 1 && n < 64) {
			held[n++] = take(bytes);
		} else if (!strncmp(line, "free", 4)) {
			while (n > 0)
				must(give(held[--n]), "cuMemFree");
			must(finish(), "cuCtxSynchronize");
		} else {
			fprintf(stderr, "not understood: %s", line);
			return 2;
		}
		printf("ok\n");
		fflush(stdout);
	}
	return 0;
}
