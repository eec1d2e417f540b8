// Stands in for libvk_swiftshader.so. Dawn opens that name and accepts no other CPU adapter, so this library hands it
// Mesa's lavapipe, which has float16, with the ids of SwiftShader. ANGLE comes in through the Vulkan loader and gets the
// real SwiftShader, which scripts/setup keeps beside this file.
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*lookup)(void *, const char *);
#define EXPORT __attribute__((visibility("default")))

static void *opened(void **library, const char *name) {
	if (!*library) *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	return *library;
}

static void *lavapipe(const char *name) {
	static void *library;
	return opened(&library, "libvulkan_lvp.so") ? dlsym(library, name) : 0;
}

static void *swiftshader(const char *name) {
	static void *library;
	return opened(&library, "libvk_swiftshader_real.so") ? dlsym(library, name) : 0;
}

static void (*properties)(void *, void *), (*properties2)(void *, void *);

// Vendor, device and type follow two numbers; "properties 2" begins with 16 bytes more.
static void disguise(void *device, void (*read)(void *, void *), void *to, int skipped) {
	read(device, to);
	uint32_t *ids = (uint32_t *)((char *)to + skipped) + 2;
	ids[0] = 0x1AE0, ids[1] = 0xC0DE, ids[2] = 4;
}

static void disguised(void *device, void *to) { disguise(device, properties, to, 0); }
static void disguised2(void *device, void *to) { disguise(device, properties2, to, 16); }

EXPORT function vkGetInstanceProcAddr(void *instance, const char *name) {
	static lookup find;
	if (!find) {
		int (*negotiate)(uint32_t *) = lavapipe("vk_icdNegotiateLoaderICDInterfaceVersion");
		uint32_t version = 5;
		if (negotiate) negotiate(&version);
		find = lavapipe("vk_icdGetInstanceProcAddr");
	}
	if (!strcmp(name, "vkGetInstanceProcAddr")) return (function)vkGetInstanceProcAddr;
	function found = find ? find(instance, name) : 0;
	if (found && !strcmp(name, "vkGetPhysicalDeviceProperties")) {
		properties = (void *)found;
		return (function)disguised;
	}
	if (found && !strncmp(name, "vkGetPhysicalDeviceProperties2", 30)) { // or …2KHR
		properties2 = (void *)found;
		return (function)disguised2;
	}
	return found;
}

EXPORT function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
	lookup find = swiftshader("vk_icdGetInstanceProcAddr");
	return find ? find(instance, name) : 0;
}

EXPORT function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
	lookup find = swiftshader("vk_icdGetPhysicalDeviceProcAddr");
	return find ? find(instance, name) : 0;
}

EXPORT int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
	int (*negotiate)(uint32_t *) = swiftshader("vk_icdNegotiateLoaderICDInterfaceVersion");
	return negotiate ? negotiate(version) : -3;
}
