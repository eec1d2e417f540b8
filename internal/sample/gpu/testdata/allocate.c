/* Takes memory of a GPU when it is told to, by CUDA's driver, which it loads: nothing of CUDA is needed to build it.
     cc -o allocate allocate.c -ldl && ./allocate DEVICE
   It prints the device's own number, then an "ok" for each line it reads: "alloc BYTES" (taken and written), "free" (all of it). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
static int (*init)(unsigned), (*get)(int *, int), (*uuid)(unsigned char *, int), (*retain)(void **, int), (*current)(void *);
static int (*alloc)(address *, size_t), (*fill)(address, unsigned char, size_t), (*give)(address), (*finish)(void);

static void *symbol(void *lib, const char *name) {
	void *s = dlsym(lib, name);
	if (!s) {
		fprintf(stderr, "libcuda.so.1 has no %s\n", name);
		exit(2);
	}
	return s;
}

static void must(int result, const char *what) {
	if (result) {
		fprintf(stderr, "%s: CUDA's error %d\n", what, result);
		exit(1);
	}
}

int main(int argc, char **argv) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context;
	if (!lib) {
		fprintf(stderr, "%s: this needs a machine with an NVIDIA GPU and its driver\n", dlerror());
		return 2;
	}
	*(void **)&init = symbol(lib, "cuInit");
	*(void **)&get = symbol(lib, "cuDeviceGet");
	*(void **)&uuid = symbol(lib, "cuDeviceGetUuid");
	*(void **)&retain = symbol(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&current = symbol(lib, "cuCtxSetCurrent");
	*(void **)&alloc = symbol(lib, "cuMemAlloc_v2");
	*(void **)&fill = symbol(lib, "cuMemsetD8_v2");
	*(void **)&give = symbol(lib, "cuMemFree_v2");
	*(void **)&finish = symbol(lib, "cuCtxSynchronize");

	int device;
	unsigned char id[16];
	must(init(0), "cuInit");
	must(get(&device, argc > 1 ? atoi(argv[1]) : 0), "cuDeviceGet");
	must(uuid(id, device), "cuDeviceGetUuid");
	must(retain(&context, device), "cuDevicePrimaryCtxRetain");
	must(current(context), "cuCtxSetCurrent");
	printf("GPU-");
	for (int i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	printf("\n");
	fflush(stdout);

	char line[64];
	address held[64];
	int n = 0;
	while (fgets(line, sizeof line, stdin)) {
		unsigned long long bytes;
		if (sscanf(line, "alloc %llu", &bytes) == 1 && n < 64) {
			must(alloc(&held[n], bytes), "cuMemAlloc");
			must(fill(held[n++], 1, bytes), "cuMemsetD8");
		} else if (!strncmp(line, "free", 4)) {
			while (n > 0)
				must(give(held[--n]), "cuMemFree");
		} else {
			fprintf(stderr, "not understood: %s", line);
			return 2;
		}
		must(finish(), "cuCtxSynchronize");
		printf("ok\n");
		fflush(stdout);
	}
	return 0;
}
