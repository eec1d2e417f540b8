// limits that decide which models and kernels an adapter can run.
const limits = [
  "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage", "maxBindGroups", "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX", "maxComputeWorkgroupStorageSize", "maxComputeWorkgroupsPerDimension",
];

// adapter describes the WebGPU adapter that an engine gets; null without one.
export async function adapter() {
  const a = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!a) return null;
  // The rest of the information needs --enable-webgpu-developer-features.
  const { vendor, architecture, device, description, backend = "", type = "", driver = "", powerPreference: power = "" } = a.info;
  return {
    vendor, architecture, device, description, backend, type, driver, power,
    fallback: Boolean(a.info.isFallbackAdapter ?? a.isFallbackAdapter),
    features: [...a.features].sort(),
    limits: Object.fromEntries(limits.filter((name) => a.limits[name] !== undefined).map((name) => [name, a.limits[name]])),
  };
}
