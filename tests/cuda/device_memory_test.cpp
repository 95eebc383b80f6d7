#include "cuda/device_memory.hpp"

#include "core/error.hpp"
#include "cuda/on_cpu/cpu_device.hpp"

#include <catch2/catch.hpp>

using namespace citysplat;
using namespace citysplat::gpu;

TEST_CASE("every byte of device memory is booked under its use until it is given back", "[gpu]") {
    auto script = std::make_shared<on_cpu::Script>();
    on_cpu::CpuDevice device(script);
    DeviceMemory memory(device, 1000);
    {
        DeviceBuffer splats = memory.allocate(MemoryUse::splats, 300);
        DeviceBuffer other = memory.allocate(MemoryUse::transient, 400);
        CHECK(memory.used_bytes() == 700);
        CHECK(memory.used_bytes(MemoryUse::splats) == 300);
        other.becomes(MemoryUse::accel);
        CHECK(memory.used_bytes(MemoryUse::transient) == 0);
        CHECK(memory.used_bytes(MemoryUse::accel) == 400);
        DeviceBuffer moved = std::move(other);
        CHECK(moved.bytes() == 400);
        splats = std::move(moved);
        CHECK(memory.used_bytes() == 400);
        CHECK(script->live_bytes == 400);
    }
    CHECK(memory.used_bytes() == 0);
    CHECK(memory.peak_bytes() == 700);
    CHECK(script->live_bytes == 0);
}

TEST_CASE("device memory beyond the limit is not asked for", "[gpu]") {
    auto script = std::make_shared<on_cpu::Script>();
    on_cpu::CpuDevice device(script);
    DeviceMemory memory(device, 1000);
    const DeviceBuffer most = memory.allocate(MemoryUse::batch, 999);
    CHECK_THROWS_AS(memory.allocate(MemoryUse::batch, 2), ResourceError);
    CHECK_THROWS_AS(memory.allocate(MemoryUse::batch, ~std::size_t{0}), ResourceError);
    CHECK(script->calls == 1);
    CHECK(memory.allocate(MemoryUse::batch, 1).bytes() == 1);
    CHECK(memory.allocate(MemoryUse::batch, 0).address() == 0);
    DeviceBuffer none;
    none.becomes(MemoryUse::accel);
    CHECK(memory.used_bytes(MemoryUse::accel) == 0);
}

TEST_CASE("a device with less memory than the limit is believed", "[gpu]") {
    auto script = std::make_shared<on_cpu::Script>();
    script->capacity_bytes = 500;
    on_cpu::CpuDevice device(script);
    DeviceMemory memory(device, 1000);
    CHECK_THROWS_WITH(memory.allocate(MemoryUse::splats, 600),
                      Catch::Contains("no memory left") && Catch::Contains("used 0 B of 1000 B"));
    CHECK(memory.used_bytes() == 0);
}
