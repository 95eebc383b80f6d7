// A libnvoptix.so.1 for machines without a GPU, beside fake_cuda.cpp: it checks what the host code says to
// OptiX against the programs' PTX, and runs the programs on the CPU. CITYSPLAT_FAKE_OPTIX_ABI set: supports
// no other; CITYSPLAT_FAKE_FAIL: name of a call that fails.
#include "cuda/on_cpu/programs.hpp"

// The table of functions needs the SDK's headers, not the double that compiles the programs.
#include <cuda.h>
#include <optix_types.h>
// Its types first.
#include <cstdlib>
#include <cstring>
#include <optix_function_table.h>
#include <string>
#include <string_view>

namespace {

using namespace citysplat;

bool fails(const char* call) {
    const char* text = std::getenv("CITYSPLAT_FAKE_FAIL");
    return text && std::string_view(text) == call;
}

OptixResult refuse(const char* why, char* log, std::size_t* log_size) {
    std::strncpy(log, why, *log_size - 1);
    return OPTIX_ERROR_INVALID_VALUE;
}

/// A program group is the name of its program.
struct Group {
    OptixProgramGroupKind kind;
    std::string program;
};

struct Module {
    std::string ptx;
};

template <class To, class From>
To as(From from) {
    return reinterpret_cast<To>(from);
}

OptixResult context_create(CUcontext context, const OptixDeviceContextOptions*, OptixDeviceContext* out) {
    *out = as<OptixDeviceContext>(1ull);
    return context && !fails("optixDeviceContextCreate") ? OPTIX_SUCCESS : OPTIX_ERROR_INVALID_VALUE;
}
OptixResult context_destroy(OptixDeviceContext) { return OPTIX_SUCCESS; }

/// Before 9.1 there was no field for it.
template <class Options>
bool params_size_is_right(const Options& options) {
    if constexpr (requires { options.pipelineLaunchParamsSizeInBytes; })
        return options.pipelineLaunchParamsSizeInBytes == sizeof(gpu::TraceParams);
    return true;
}

OptixResult module_create(OptixDeviceContext, const OptixModuleCompileOptions*,
                          const OptixPipelineCompileOptions* pipeline, const char* input, std::size_t size,
                          char* log, std::size_t* log_size, OptixModule* out) {
    const std::string ptx(input, size);
    if (fails("optixModuleCreate")) return refuse("line 1: what is this?", log, log_size);
    if (pipeline->numPayloadValues != gpu::kPayloadWords) return refuse("payload words", log, log_size);
    const std::string params = std::string(" ") + pipeline->pipelineLaunchParamsVariableName + "[" +
                               std::to_string(sizeof(gpu::TraceParams)) + "];";
    if (ptx.find(params) == ptx.npos) return refuse("no such parameters", log, log_size);
    if (!params_size_is_right(*pipeline)) return refuse("size of the parameters", log, log_size);
    *out = as<OptixModule>(new Module{ptx});
    return OPTIX_SUCCESS;
}
OptixResult module_destroy(OptixModule module) {
    delete as<Module*>(module);
    return OPTIX_SUCCESS;
}

OptixResult groups_create(OptixDeviceContext, const OptixProgramGroupDesc* descriptions, unsigned count,
                          const OptixProgramGroupOptions*, char* log, std::size_t* log_size,
                          OptixProgramGroup* out) {
    for (unsigned i = 0; i < count; ++i) {
        const OptixProgramGroupDesc& d = descriptions[i];
        const bool hit = d.kind == OPTIX_PROGRAM_GROUP_KIND_HITGROUP;
        const OptixModule module = hit ? d.hitgroup.moduleIS : d.raygen.module;
        const char* name = hit ? d.hitgroup.entryFunctionNameIS : d.raygen.entryFunctionName;
        if (!name && d.kind != OPTIX_PROGRAM_GROUP_KIND_MISS) return refuse("no name", log, log_size);
        if (name) {
            const std::string entry = std::string(".entry ") + name + "(";
            if (as<Module*>(module)->ptx.find(entry) == std::string::npos) return refuse(name, log, log_size);
        }
        out[i] = as<OptixProgramGroup>(new Group{d.kind, name ? name : ""});
    }
    return OPTIX_SUCCESS;
}
OptixResult group_destroy(OptixProgramGroup group) {
    delete as<Group*>(group);
    return OPTIX_SUCCESS;
}
OptixResult group_stack(OptixProgramGroup, OptixStackSizes* sizes, OptixPipeline) {
    *sizes = {};
    sizes->cssRG = 200;
    sizes->cssIS = 100;
    return OPTIX_SUCCESS;
}
/// A record's header is the address of its group.
OptixResult pack_header(OptixProgramGroup group, void* record) {
    std::memset(record, 0, OPTIX_SBT_RECORD_HEADER_SIZE);
    std::memcpy(record, &group, sizeof group);
    return OPTIX_SUCCESS;
}
const Group& group_at(CUdeviceptr record) {
    Group* group;
    std::memcpy(&group, reinterpret_cast<const void*>(record), sizeof group);
    return *group;
}

OptixResult pipeline_create(OptixDeviceContext, const OptixPipelineCompileOptions*,
                            const OptixPipelineLinkOptions* link, const OptixProgramGroup*, unsigned,
                            char* log, std::size_t* log_size, OptixPipeline* out) {
    if (fails("optixPipelineCreate") || link->maxTraceDepth != 1) return refuse("depth", log, log_size);
    *out = as<OptixPipeline>(2ull);
    return OPTIX_SUCCESS;
}
OptixResult pipeline_destroy(OptixPipeline) { return OPTIX_SUCCESS; }
OptixResult pipeline_stack(OptixPipeline, unsigned, unsigned, unsigned continuation, unsigned graph_depth) {
    return continuation == 300 && graph_depth == 2 ? OPTIX_SUCCESS : OPTIX_ERROR_INVALID_VALUE;
}

unsigned count_of(const OptixBuildInput& input) {
    return input.type == OPTIX_BUILD_INPUT_TYPE_INSTANCES ? input.instanceArray.numInstances
                                                          : input.customPrimitiveArray.numPrimitives;
}

OptixResult memory_usage(OptixDeviceContext, const OptixAccelBuildOptions*, const OptixBuildInput* input,
                         unsigned, OptixAccelBufferSizes* sizes) {
    *sizes = {};
    sizes->outputSizeInBytes = 128 + std::size_t{count_of(*input)} * 60;
    sizes->tempSizeInBytes = 1000 + std::size_t{count_of(*input)} * 10;
    return OPTIX_SUCCESS;
}

OptixResult accel_build(OptixDeviceContext, CUstream, const OptixAccelBuildOptions* options,
                        const OptixBuildInput* input, unsigned inputs, CUdeviceptr temp,
                        std::size_t temp_bytes, CUdeviceptr output, std::size_t output_bytes,
                        OptixTraversableHandle* out, const OptixAccelEmitDesc* emit, unsigned emitted) {
    OptixAccelBufferSizes needed{};
    memory_usage(nullptr, options, input, inputs, &needed);
    if (fails("optixAccelBuild") || inputs != 1 || !input || temp % OPTIX_ACCEL_BUFFER_BYTE_ALIGNMENT ||
        output % OPTIX_ACCEL_BUFFER_BYTE_ALIGNMENT || temp_bytes < needed.tempSizeInBytes ||
        output_bytes < needed.outputSizeInBytes)
        return OPTIX_ERROR_INVALID_VALUE;
    auto accel = std::make_shared<on_cpu::Accel>();
    if (input->type == OPTIX_BUILD_INPUT_TYPE_INSTANCES) {
        const auto* first = reinterpret_cast<const gpu::TileInstance*>(input->instanceArray.instances);
        accel->instances.assign(first, first + count_of(*input));
        if (emitted != 0) return OPTIX_ERROR_INVALID_VALUE;
    } else {
        const auto& discs = input->customPrimitiveArray;
        const auto* boxes = reinterpret_cast<const gpu::DiscBox*>(discs.aabbBuffers[0]);
        accel->discs = std::make_unique<on_cpu::BoxTree>(std::span(boxes, discs.numPrimitives));
        if (emitted != 1 || emit->type != OPTIX_PROPERTY_TYPE_COMPACTED_SIZE || discs.numSbtRecords != 1 ||
            !(options->buildFlags & OPTIX_BUILD_FLAG_ALLOW_COMPACTION))
            return OPTIX_ERROR_INVALID_VALUE;
        const std::uint64_t bytes = 128 + std::uint64_t{discs.numPrimitives} * 30;
        std::memcpy(reinterpret_cast<void*>(emit->result), &bytes, sizeof bytes);
    }
    on_cpu::put_accel(reinterpret_cast<std::byte*>(output), std::move(accel));
    *out = output;
    return OPTIX_SUCCESS;
}

OptixResult accel_compact(OptixDeviceContext, CUstream, OptixTraversableHandle from, CUdeviceptr to,
                          std::size_t, OptixTraversableHandle* out) {
    on_cpu::put_accel(reinterpret_cast<std::byte*>(to), on_cpu::share_accel(from));
    *out = to;
    return OPTIX_SUCCESS;
}

OptixResult launch(OptixPipeline, CUstream, CUdeviceptr params, std::size_t params_bytes,
                   const OptixShaderBindingTable* table, unsigned width, unsigned height, unsigned depth) {
    const auto hit_name = [&](unsigned i) {
        return group_at(table->hitgroupRecordBase + i * table->hitgroupRecordStrideInBytes).program;
    };
    const bool sound = params_bytes == sizeof(gpu::TraceParams) && height == 1 && depth == 1 &&
                       table->missRecordCount == 1 && table->hitgroupRecordCount == 2 &&
                       hit_name(0) == "__intersection__closest" && hit_name(1) == "__intersection__nearest" &&
                       group_at(table->missRecordBase).kind == OPTIX_PROGRAM_GROUP_KIND_MISS;
    const std::string raygen = group_at(table->raygenRecord).program;
    if (!sound || fails("optixLaunch")) return OPTIX_ERROR_INVALID_VALUE;
    gpu::TraceParams copy;
    std::memcpy(&copy, reinterpret_cast<const void*>(params), sizeof copy);
    const auto kind = raygen == "__raygen__closest" ? gpu::TraceKind::closest : gpu::TraceKind::nearest;
    on_cpu::launch(kind, copy, width, {});
    return OPTIX_SUCCESS;
}

const char* error_name(OptixResult) { return "OPTIX_ERROR_FAKE"; }

}  // namespace

extern "C" OptixResult optixQueryFunctionTable(int abi, unsigned, void*, const void**, void* out,
                                               std::size_t bytes) {
    const char* only = std::getenv("CITYSPLAT_FAKE_OPTIX_ABI");
    if (only && std::atoi(only) != abi) return OPTIX_ERROR_UNSUPPORTED_ABI_VERSION;
    OptixFunctionTable table{};
    if (bytes != sizeof table) return OPTIX_ERROR_FUNCTION_TABLE_SIZE_MISMATCH;
    table.optixGetErrorName = error_name;
    table.optixDeviceContextCreate = context_create;
    table.optixDeviceContextDestroy = context_destroy;
    table.optixModuleCreate = module_create;
    table.optixModuleDestroy = module_destroy;
    table.optixProgramGroupCreate = groups_create;
    table.optixProgramGroupDestroy = group_destroy;
    table.optixProgramGroupGetStackSize = group_stack;
    table.optixPipelineCreate = pipeline_create;
    table.optixPipelineDestroy = pipeline_destroy;
    table.optixPipelineSetStackSize = pipeline_stack;
    table.optixAccelComputeMemoryUsage = memory_usage;
    table.optixAccelBuild = accel_build;
    table.optixAccelCompact = accel_compact;
    table.optixSbtRecordPackHeader = pack_header;
    table.optixLaunch = launch;
    std::memcpy(out, &table, sizeof table);
    return OPTIX_SUCCESS;
}
