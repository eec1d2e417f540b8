/* A library with the functions of NVIDIA's NVML that are asked, for two GPUs that are not there: the real loader and the real way through C
   are tested with it. With OLD it is one of before 2020, which must not be asked what it has not.
     cc -shared -fPIC [-DOLD] -o libnvidia-ml.so.1 nvml.c */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned u32;
typedef unsigned long long u64;
enum { ok = 0, not_supported = 3, insufficient_size = 7 };
static int devices[2];
static const u64 gib = 1ull << 30;

static u32 index_of(void *device) { return (int *)device - devices; }

int nvmlInit_v2(void) { return ok; }
int nvmlShutdown(void) { return ok; }
const char *nvmlErrorString(int r) { return r == not_supported ? "Not Supported" : "an error"; }
int nvmlDeviceGetCount_v2(u32 *n) { *n = 2; return ok; }
int nvmlDeviceGetHandleByIndex_v2(u32 i, void **d) { *d = &devices[i]; return ok; }
int nvmlSystemGetDriverVersion(char *to, u32 n) { snprintf(to, n, "999.1"); return ok; }
int nvmlDeviceGetName(void *d, char *to, u32 n) { snprintf(to, n, "Test GPU %u", index_of(d)); return ok; }
int nvmlDeviceGetUUID(void *d, char *to, u32 n) { snprintf(to, n, "GPU-%u", index_of(d)); return ok; }

struct memory { u64 total, free, used; };
int nvmlDeviceGetMemoryInfo(void *d, struct memory *m) {
	m->total = 16 * gib, m->used = (index_of(d) + 2) * gib, m->free = m->total - m->used;
	return ok;
}
int nvmlDeviceGetUtilizationRates(void *d, u32 *rates) { rates[0] = 60 + index_of(d), rates[1] = 30; return ok; }
int nvmlDeviceGetPowerUsage(void *d, u32 *mw) { *mw = 70500; return index_of(d) ? not_supported : ok; }
int nvmlDeviceGetTemperature(void *d, int sensor, u32 *c) { *c = 41; return sensor || !d; }

/* pid gives the process of the test, which is told by an environment variable. */
static u32 pid(void) { return atoi(getenv("GPU_TEST_PID")); }

#ifdef OLD
struct process { u32 pid; u64 used; };
#define COMPUTE nvmlDeviceGetComputeRunningProcesses
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses
#else
struct process { u32 pid; u64 used; u32 gpu_instance, compute_instance; };
#define COMPUTE nvmlDeviceGetComputeRunningProcesses_v3
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses_v3

struct memory_v2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *d, struct memory_v2 *m) {
	if (m->version != (sizeof *m | 2 << 24))
		return 25; /* another version of the argument */
	m->total = 16 * gib, m->reserved = gib / 2, m->used = (index_of(d) + 1) * gib, m->free = m->total - m->used - m->reserved;
	return ok;
}
int nvmlDeviceGetTotalEnergyConsumption(void *d, u64 *mj) { static u64 e; *mj = e += 500; return !d; }
int nvmlDeviceGetMigMode(void *d, u32 *now, u32 *pending) { return d ? not_supported : (*now = *pending = 0); }
#endif

/* Three compute on the first GPU, which is more than is asked for at first; the test's process draws on both. */
int COMPUTE(void *d, u32 *n, struct process *p) {
	u32 there = index_of(d) ? 0 : 3, room = *n;
	*n = there;
	if (room < there)
		return insufficient_size;
	for (u32 i = 0; i < there; i++)
		p[i].pid = i == 2 ? pid() : 1000000 + i, p[i].used = (i + 1) * gib / 4;
	return ok;
}
int GRAPHICS(void *d, u32 *n, struct process *p) {
	if (*n < 1)
		return insufficient_size;
	*n = 1, p[0].pid = pid(), p[0].used = index_of(d) ? ~0ull : gib / 8;
	return ok;
}
