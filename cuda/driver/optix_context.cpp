#include "cuda/driver/optix_context.hpp"

#include "core/error.hpp"

#include <cstring>
#include <type_traits>

// The one place that holds OptiX's table of functions, filled from the driver's library by optixInit().
#include <optix_function_table_definition.h>
#include <optix_stack_size.h>
#include <optix_stubs.h>

namespace citysplat::gpu {

namespace {

// What the rest of cuda/ knows of OptiX's layouts without its headers.
static_assert(sizeof(DiscBox) == sizeof(OptixAabb));
static_assert(sizeof(TileInstance) == sizeof(OptixInstance) &&
              alignof(TileInstance) >= OPTIX_INSTANCE_BYTE_ALIGNMENT);
static_assert(offsetof(TileInstance, scene_from_tile) == offsetof(OptixInstance, transform));
static_assert(offsetof(TileInstance, slot) == offsetof(OptixInstance, instanceId));
static_assert(offsetof(TileInstance, visibility_mask) == offsetof(OptixInstance, visibilityMask));
static_assert(offsetof(TileInstance, traversable) == offsetof(OptixInstance, traversableHandle));
static_assert(kAccelAlignment == OPTIX_ACCEL_BUFFER_BYTE_ALIGNMENT);

void check(OptixResult result, const char* doing, const std::string& log = {}) {
    if (result == OPTIX_SUCCESS) return;
    const std::string message = std::string("OptiX failed while ") + doing + " (" +
                                OptixContext::text(result) + ")" + (log.empty() ? "" : ": " + log);
    if (result == OPTIX_ERROR_HOST_OUT_OF_MEMORY || result == OPTIX_ERROR_DEVICE_OUT_OF_MEMORY)
        throw ResourceError(message);
    throw UnavailableError(message);
}

/// What OptiX's compiler has to say.
struct Log {
    char text[2048] = {};
    std::size_t size = sizeof text;
    operator std::string() const { return text; }
};

/// 9.1 wants to know the size of the parameters; older versions have no field for it.
template <class Options>
void tell_params_size(Options& options) {
    if constexpr (requires { options.pipelineLaunchParamsSizeInBytes; })
        options.pipelineLaunchParamsSizeInBytes = sizeof(TraceParams);
}

OptixPipelineCompileOptions pipeline_options() {
    OptixPipelineCompileOptions options{};
    options.traversableGraphFlags = OPTIX_TRAVERSABLE_GRAPH_FLAG_ALLOW_SINGLE_LEVEL_INSTANCING;
    options.numPayloadValues = kPayloadWords;
    options.numAttributeValues = 2;
    options.exceptionFlags = OPTIX_EXCEPTION_FLAG_NONE;
    options.pipelineLaunchParamsVariableName = "params";
    options.usesPrimitiveTypeFlags = static_cast<unsigned>(OPTIX_PRIMITIVE_TYPE_FLAGS_CUSTOM);
    tell_params_size(options);
    return options;
}

OptixAccelBuildOptions build_options(AccelKind kind) {
    OptixAccelBuildOptions options{};
    options.buildFlags = OPTIX_BUILD_FLAG_PREFER_FAST_TRACE;
    if (kind == AccelKind::discs) options.buildFlags |= OPTIX_BUILD_FLAG_ALLOW_COMPACTION;
    options.operation = OPTIX_BUILD_OPERATION_BUILD;
    return options;
}

/// A build input with what it points to. Not to be moved.
struct BuildInput {
    BuildInput(AccelKind kind, DeviceAddress data, std::uint32_t count) : address(data) {
        if (kind == AccelKind::scene) {
            input.type = OPTIX_BUILD_INPUT_TYPE_INSTANCES;
            input.instanceArray.instances = address;
            input.instanceArray.numInstances = count;
            return;
        }
        input.type = OPTIX_BUILD_INPUT_TYPE_CUSTOM_PRIMITIVES;
        input.customPrimitiveArray.aabbBuffers = &address;
        input.customPrimitiveArray.numPrimitives = count;
        input.customPrimitiveArray.flags = &flags;
        input.customPrimitiveArray.numSbtRecords = 1;
    }
    BuildInput(const BuildInput&) = delete;
    BuildInput& operator=(const BuildInput&) = delete;

    CUdeviceptr address;
    unsigned flags = OPTIX_GEOMETRY_FLAG_DISABLE_ANYHIT;
    OptixBuildInput input{};
};

}  // namespace

OptixResult OptixContext::initialise() { return optixInit(); }

std::string OptixContext::text(OptixResult result) {
    const char* name = optixGetErrorName(result);
    return std::string(name ? name : "unknown error") + ", " + std::to_string(result);
}

OptixContext::OptixContext(const DriverApi& driver, CUcontext context, CUstream stream,
                           std::string_view programs)
    : driver_(driver) {
    try {
        check(initialise(), "starting");
        const OptixDeviceContextOptions options{};
        check(optixDeviceContextCreate(context, &options, &context_), "making a context");
        create_module(programs);
        create_groups();
        create_pipeline();
        create_binding_table(stream);
    } catch (...) {
        destroy();
        throw;
    }
}

OptixContext::~OptixContext() { destroy(); }

void OptixContext::destroy() noexcept {
    if (records_) driver_.cuMemFree(records_);
    if (pipeline_) optixPipelineDestroy(pipeline_);
    for (OptixProgramGroup group : groups_)
        if (group) optixProgramGroupDestroy(group);
    if (module_) optixModuleDestroy(module_);
    if (context_) optixDeviceContextDestroy(context_);
}

void OptixContext::create_module(std::string_view programs) {
    OptixModuleCompileOptions options{};
    options.maxRegisterCount = OPTIX_COMPILE_DEFAULT_MAX_REGISTER_COUNT;
    options.optLevel = OPTIX_COMPILE_OPTIMIZATION_DEFAULT;
    options.debugLevel = OPTIX_COMPILE_DEBUG_LEVEL_NONE;
    const OptixPipelineCompileOptions pipeline = pipeline_options();
    Log log;
    const OptixResult result = optixModuleCreate(context_, &options, &pipeline, programs.data(),
                                                 programs.size(), log.text, &log.size, &module_);
    check(result, "compiling the programs", log);
}

void OptixContext::create_groups() {
    std::array<OptixProgramGroupDesc, kGroups> descriptions{};
    const auto raygen = [&](Group group, const char* name) {
        descriptions[group].kind = OPTIX_PROGRAM_GROUP_KIND_RAYGEN;
        descriptions[group].raygen = {module_, name};
    };
    const auto hit = [&](Group group, const char* name) {
        descriptions[group].kind = OPTIX_PROGRAM_GROUP_KIND_HITGROUP;
        descriptions[group].hitgroup.moduleIS = module_;
        descriptions[group].hitgroup.entryFunctionNameIS = name;
    };
    raygen(raygen_closest, "__raygen__closest");
    raygen(raygen_nearest, "__raygen__nearest");
    descriptions[miss].kind = OPTIX_PROGRAM_GROUP_KIND_MISS;  // no program: the payload says it
    hit(hit_closest, "__intersection__closest");
    hit(hit_nearest, "__intersection__nearest");
    const OptixProgramGroupOptions options{};
    Log log;
    const OptixResult result = optixProgramGroupCreate(context_, descriptions.data(), kGroups, &options,
                                                       log.text, &log.size, groups_.data());
    check(result, "preparing the programs", log);
}

void OptixContext::create_pipeline() {
    constexpr unsigned kTraceDepth = 1, kGraphDepth = 2;  // instances over discs
    const OptixPipelineCompileOptions compile = pipeline_options();
    OptixPipelineLinkOptions link{};
    link.maxTraceDepth = kTraceDepth;
    Log log;
    const OptixResult result = optixPipelineCreate(context_, &compile, &link, groups_.data(), kGroups,
                                                   log.text, &log.size, &pipeline_);
    check(result, "linking the programs", log);

    OptixStackSizes sizes{};
    for (OptixProgramGroup group : groups_)
        check(optixUtilAccumulateStackSizes(group, &sizes, pipeline_), "measuring stacks");
    unsigned from_traversal = 0, from_state = 0, continuation = 0;
    check(optixUtilComputeStackSizes(&sizes, kTraceDepth, 0, 0, &from_traversal, &from_state, &continuation),
          "measuring stacks");
    check(optixPipelineSetStackSize(pipeline_, from_traversal, from_state, continuation, kGraphDepth),
          "setting stacks");
}

void OptixContext::create_binding_table(CUstream stream) {
    std::array<std::array<std::byte, OPTIX_SBT_RECORD_HEADER_SIZE>, kGroups> records;
    for (unsigned i = 0; i < kGroups; ++i)
        check(optixSbtRecordPackHeader(groups_[i], records[i].data()), "making the binding table");
    driver_.check(driver_.cuMemAlloc(&records_, sizeof records), "making room for the binding table");
    driver_.check(driver_.cuMemcpyHtoDAsync(records_, records.data(), sizeof records, stream),
                  "copying the binding table");
    driver_.check(driver_.cuStreamSynchronize(stream), "copying the binding table");
}

AccelSizes OptixContext::accel_sizes(AccelKind kind, std::uint32_t count) const {
    const OptixAccelBuildOptions options = build_options(kind);
    const BuildInput input(kind, 0, count);
    OptixAccelBufferSizes sizes{};
    check(optixAccelComputeMemoryUsage(context_, &options, &input.input, 1, &sizes),
          "planning an acceleration structure");
    return {sizes.outputSizeInBytes, sizes.tempSizeInBytes};
}

std::uint64_t OptixContext::build(CUstream stream, const AccelBuild& task) const {
    const OptixAccelBuildOptions options = build_options(task.kind);
    const BuildInput input(task.kind, task.input, task.count);
    const OptixAccelEmitDesc emit{task.compacted_size, OPTIX_PROPERTY_TYPE_COMPACTED_SIZE};
    const unsigned emitted = task.kind == AccelKind::discs ? 1 : 0;
    OptixTraversableHandle traversable = 0;
    check(optixAccelBuild(context_, stream, &options, &input.input, 1, task.temp, task.sizes.temp_bytes,
                          task.output, task.sizes.output_bytes, &traversable, emitted ? &emit : nullptr,
                          emitted),
          "building an acceleration structure");
    return traversable;
}

std::uint64_t OptixContext::compact(CUstream stream, std::uint64_t traversable, DeviceAddress to,
                                    std::size_t bytes) const {
    OptixTraversableHandle compacted = 0;
    check(optixAccelCompact(context_, stream, traversable, to, bytes, &compacted),
          "compacting an acceleration structure");
    return compacted;
}

void OptixContext::launch(CUstream stream, TraceKind kind, DeviceAddress params, std::uint32_t rays) const {
    const auto record = [&](Group group) { return records_ + group * OPTIX_SBT_RECORD_HEADER_SIZE; };
    OptixShaderBindingTable table{};
    table.raygenRecord = record(kind == TraceKind::closest ? raygen_closest : raygen_nearest);
    table.missRecordBase = record(miss);
    table.missRecordStrideInBytes = OPTIX_SBT_RECORD_HEADER_SIZE;
    table.missRecordCount = 1;
    table.hitgroupRecordBase = record(hit_closest);
    table.hitgroupRecordStrideInBytes = OPTIX_SBT_RECORD_HEADER_SIZE;
    table.hitgroupRecordCount = 2;
    check(optixLaunch(pipeline_, stream, params, sizeof(TraceParams), &table, rays, 1, 1), "tracing");
}

}  // namespace citysplat::gpu
