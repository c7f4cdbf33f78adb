#pragma once
/// What we use of wgpu-native's C interface (webgpu.h and wgpu.h of version 29), so that nothing of it is needed to build.
/// Names are those of the headers without WGPU and wgpu; a number after a structure is its size in bytes, which api.cpp checks.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/dylib.h"

namespace tinygrad::runtime::webgpu {

inline constexpr uint32_t kMajorVersion = 29;

template <class Tag>
struct Object;
using Instance = Object<struct InstanceTag>*;
using Adapter = Object<struct AdapterTag>*;
using GpuDevice = Object<struct DeviceTag>*;
using Queue = Object<struct QueueTag>*;
using GpuBuffer = Object<struct BufferTag>*;
using ShaderModule = Object<struct ShaderModuleTag>*;
using BindGroupLayout = Object<struct BindGroupLayoutTag>*;
using PipelineLayout = Object<struct PipelineLayoutTag>*;
using Pipeline = Object<struct ComputePipelineTag>*;
using BindGroup = Object<struct BindGroupTag>*;
using Encoder = Object<struct CommandEncoderTag>*;
using Pass = Object<struct ComputePassEncoderTag>*;
using CommandBuffer = Object<struct CommandBufferTag>*;
using QuerySet = Object<struct QuerySetTag>*;

struct StringView {
  const char* data = nullptr;
  size_t length = SIZE_MAX;  ///< SIZE_MAX: up to a null byte; with null data: nothing
  StringView() = default;
  StringView(std::string_view text) : data(text.data()), length(text.size()) {}
  std::string str() const { return !data ? std::string() : length == SIZE_MAX ? std::string(data) : std::string(data, length); }
};

struct Chained {
  const Chained* next = nullptr;
  uint32_t type = 0;
};
inline constexpr uint32_t kShaderSourceWgsl = 2, kInstanceExtras = 0x30004;

/// Vulkan, Metal and Direct3D: those with all of WebGPU's compute.
inline constexpr uint64_t kPrimaryBackends = 1 << 0 | 1 << 2 | 1 << 3;
struct InstanceExtras {  // 112
  Chained chain{nullptr, kInstanceExtras};
  uint64_t backends = kPrimaryBackends;
  uint64_t flags = 0;  ///< no debugging and no validation by the driver
  uint32_t dx12_compiler = 0, gles_version = 0, gl_fence = 0;
  StringView dxc_path;
  uint32_t dxc_model = 0, dx12_presentation = 0;
  const uint8_t *budget_for_creation = nullptr, *budget_for_loss = nullptr;
  uint32_t display_type = 0;
  void* display[2] = {};
};
struct InstanceDescriptor {  // 32
  const Chained* next = nullptr;
  size_t feature_count = 0;
  const uint32_t* features = nullptr;
  const void* limits = nullptr;
};

struct EnumerateOptions {  // 16
  const Chained* next = nullptr;
  uint64_t backends = kPrimaryBackends;
};

enum class AdapterType : uint32_t { discrete = 1, integrated = 2, cpu = 3, unknown = 4 };
struct AdapterInfo {  // 96
  const Chained* next = nullptr;
  StringView vendor, architecture, device, description;
  uint32_t backend = 0;
  AdapterType type = AdapterType::unknown;
  uint32_t vendor_id = 0, device_id = 0, subgroup_min = 0, subgroup_max = 0;
};

struct Limits {  // 152
  const Chained* next = nullptr;
  uint32_t textures_and_groups[7] = {};
  uint32_t dynamic_uniform_buffers = 0, dynamic_storage_buffers = 0, sampled_textures = 0, samplers = 0;
  uint32_t storage_buffers_per_stage = 0, storage_textures = 0, uniform_buffers = 0;
  uint64_t uniform_binding_size = 0, storage_binding_size = 0;
  uint32_t uniform_alignment = 0, storage_alignment = 0, vertex_buffers = 0;
  uint64_t buffer_size = 0;
  uint32_t rendering[5] = {};
  uint32_t group_memory = 0, group_invocations = 0, group_size_x = 0, group_size_y = 0, group_size_z = 0, groups_per_dimension = 0;
  uint32_t immediate_size = 0;
};

enum class Feature : uint32_t { timestamp_query = 0x9, shader_f16 = 0xb };
enum class CallbackMode : uint32_t { process_events = 2, spontaneous = 3 };
enum class ErrorType : uint32_t { none = 1, validation = 2, out_of_memory = 3, internal = 4, unknown = 5 };
inline constexpr uint32_t kSuccess = 1;                    ///< of a status
inline constexpr uint32_t kDestroyed = 2, kCancelled = 3;  ///< why a device is lost

template <class Function>
struct CallbackInfo {  // 40
  const Chained* next = nullptr;
  CallbackMode mode = CallbackMode::spontaneous;
  Function* callback = nullptr;
  void *data1 = nullptr, *data2 = nullptr;
};
struct ErrorCallbackInfo {  // 32
  const Chained* next = nullptr;
  void (*callback)(const GpuDevice*, ErrorType, StringView, void*, void*) = nullptr;
  void *data1 = nullptr, *data2 = nullptr;
};
using DeviceCallbackInfo = CallbackInfo<void(uint32_t status, GpuDevice, StringView, void*, void*)>;
using LostCallbackInfo = CallbackInfo<void(const GpuDevice*, uint32_t reason, StringView, void*, void*)>;
using MapCallbackInfo = CallbackInfo<void(uint32_t status, StringView, void*, void*)>;

struct DeviceDescriptor {  // 144
  const Chained* next = nullptr;
  StringView label;
  size_t feature_count = 0;
  const Feature* features = nullptr;
  const Limits* limits = nullptr;
  const Chained* queue_next = nullptr;
  StringView queue_label;
  LostCallbackInfo lost;
  ErrorCallbackInfo error;
};

enum BufferUsage : uint64_t {
  map_read = 0x1,
  map_write = 0x2,
  copy_from = 0x4,
  copy_to = 0x8,
  uniform = 0x40,
  storage = 0x80,
  query_resolve = 0x200
};
struct BufferDescriptor {  // 48
  const Chained* next = nullptr;
  StringView label;
  uint64_t usage = 0, size = 0;
  uint32_t mapped_at_creation = 0;
};

struct ShaderSource {  // 32
  Chained chain{nullptr, kShaderSourceWgsl};
  StringView code;
};
inline constexpr uint64_t kBoundsChecks = 1;  ///< of a shader module
struct Labeled {                              // 24: descriptors of shader modules, encoders and command buffers
  const Chained* next = nullptr;
  StringView label;
};

enum class BindingType : uint32_t { unused = 0, uniform = 2, storage = 3 };
struct BindGroupLayoutEntry {  // 120
  const Chained* next = nullptr;
  uint32_t binding = 0;
  uint64_t visibility = 4;  ///< compute shaders
  uint32_t array_size = 0;
  struct {
    const Chained* next = nullptr;
    BindingType type = BindingType::unused;
    uint32_t has_dynamic_offset = 0;
    uint64_t min_size = 0;
  } buffer;
  struct {
    const Chained* next = nullptr;
    uint32_t type = 0;
  } sampler;
  struct {
    const Chained* next = nullptr;
    uint32_t sample_type = 0, dimension = 0, multisampled = 0;
  } texture, storage_texture;
};
struct BindGroupLayoutDescriptor {  // 40
  const Chained* next = nullptr;
  StringView label;
  size_t count = 0;
  const BindGroupLayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {  // 48
  const Chained* next = nullptr;
  StringView label;
  size_t count = 0;
  const BindGroupLayout* layouts = nullptr;
  uint32_t immediate_size = 0;
};
struct Constant {  // 32
  const Chained* next = nullptr;
  StringView key;
  double value = 0;
};
struct PipelineDescriptor {  // 80
  const Chained* next = nullptr;
  StringView label;
  PipelineLayout layout = nullptr;
  const Chained* compute_next = nullptr;
  ShaderModule module = nullptr;
  StringView entry;
  size_t constant_count = 0;
  const Constant* constants = nullptr;
};
struct BindGroupEntry {  // 56
  const Chained* next = nullptr;
  uint32_t binding = 0;
  GpuBuffer buffer = nullptr;
  uint64_t offset = 0, size = 0;
  void *sampler = nullptr, *texture = nullptr;
};
struct BindGroupDescriptor {  // 48
  const Chained* next = nullptr;
  StringView label;
  BindGroupLayout layout = nullptr;
  size_t count = 0;
  const BindGroupEntry* entries = nullptr;
};
struct TimestampWrites {  // 24
  const Chained* next = nullptr;
  QuerySet queries = nullptr;
  uint32_t begin = 0, end = 1;
};
struct PassDescriptor {  // 32
  const Chained* next = nullptr;
  StringView label;
  const TimestampWrites* timestamps = nullptr;
};
struct QuerySetDescriptor {  // 32
  const Chained* next = nullptr;
  StringView label;
  uint32_t type = 2;  ///< timestamps
  uint32_t count = 0;
};

/// The functions of the library, by their names.
struct Api {
  explicit Api(DynamicLibrary library);

  DynamicLibrary library;
  // NOLINTBEGIN(readability-identifier-naming)
#define TG_WGPU(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
#include "runtime/webgpu/functions.def"
#undef TG_WGPU
  // NOLINTEND(readability-identifier-naming)
};

/// The library at `path`, or the one that the system finds. Throws DeviceError for none and, because the structures change from one major
/// version to the next, for one of another version.
DynamicLibrary open_library(const std::string& path);

/// Opened once, as the option WEBGPU_PATH has it. Throws DeviceError saying what to install, or what is wrong with what is.
const Api& api();

}  // namespace tinygrad::runtime::webgpu
