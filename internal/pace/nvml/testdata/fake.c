// A library with NVML's face, for the binding's test: what nvml.h declares, no more.
#include <string.h>

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st { unsigned temp; } *nvmlDevice_t;

static struct nvmlDevice_st device = {71};
static int open_count;

nvmlReturn_t nvmlInit_v2(void) { open_count++; return 0; }
nvmlReturn_t nvmlShutdown(void) { return --open_count >= 0 ? 0 : 1; }
const char *nvmlErrorString(nvmlReturn_t r) {
	return r == 6 ? "Not Found" : r == 3 ? "Not Supported" : "Uninitialized";
}
static nvmlReturn_t found(int yes, nvmlDevice_t *d) {
	if (!yes) return 6;
	*d = &device;
	return 0;
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *d) { return found(!strcmp(id, "0000:65:00.0"), d); }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *id, nvmlDevice_t *d) { return found(!strcmp(id, "GPU-0a1b2c3d-0000-0000-0000-000000000001"), d); }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor, unsigned *t) {
	if (sensor != 0) return 3;
	*t = d->temp;
	return 0;
}
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, int kind, unsigned *t) {
	(void)d;
	if (kind == 1) *t = 92; else if (kind == 3) *t = 88; else return 3;
	return 0;
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *mw) { (void)d; *mw = 212500; return 0; }
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, int kind, unsigned *mhz) {
	(void)d;
	if (kind != 1) return 3;
	*mhz = 1755;
	return 0;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *r) {
	(void)d;
	*r = 0x100000000ull | 0x20;
	return 0;
}
