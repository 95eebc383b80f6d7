#include "core/error.hpp"
#include "io/las/chunk_decoder.hpp"
#include "laz_perf_wasm.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <sys/mman.h>
#include <vector>

/// laz-perf as a WebAssembly module, translated to C by wasm2c: every access is checked against the module's
/// own memory, as a browser does with a codec it does not trust. This file is the module's world: memory,
/// traps, the functions it imports, and the few of its functions that we call. A trap is a C++ exception that
/// passes through the generated C (compiled with -fexceptions); the instance is then thrown away.
///
/// Memory of an instance: the module's heap grows from 0 to at most kHeapBytes; the chunk lies from there on.
/// The memory ends with the last byte of the chunk, so reading beyond the chunk traps. The mapping is as
/// large as the largest chunk needed, because address space can be limited too; the system backs what is
/// touched.
namespace citysplat::io {

namespace {

constexpr std::uint32_t kPageBytes = 65536;
constexpr std::uint32_t kHeapBytes = 256u << 20;
constexpr std::uint32_t kMaxChunkBytes = 1792u << 20;
constexpr std::size_t kPieceBytes = 256 << 10;

struct Trap {
    std::string what;
};

}  // namespace
}  // namespace citysplat::io

using citysplat::io::Trap;

/// What the module's imports get as their first argument: the instance with the C++ classes that the module
/// registers at start-up (embind), of which we keep the methods by name.
struct Z_env_instance_t {
    struct Method {
        std::uint32_t type, invoker, context;
        std::string name;
    };
    struct Class {
        std::uint32_t type;
        std::string name;
        std::uint32_t constructor_invoker = 0, constructor = 0;
    };

    Z_lazperf_instance_t module{};
    std::vector<Class> classes;
    std::vector<Method> methods;
    std::string error;

    std::string text(std::uint32_t at) const {
        const auto& memory = module.w2c_memory;
        std::string out;
        while (at < memory.size && memory.data[at] != 0 && out.size() < 200)
            out += static_cast<char>(memory.data[at++]);
        return out;
    }
};
struct Z_wasi_snapshot_preview1_instance_t {};

// The runtime that the generated code calls.
extern "C" {

/// Asked by assertions. There is nothing to initialise: each instance brings its own memory and types.
bool wasm_rt_is_initialized() { return true; }

void wasm_rt_trap(wasm_rt_trap_t reason) {
    switch (reason) {
        case WASM_RT_TRAP_OOB:
            throw Trap{"reads beyond its end"};
        case WASM_RT_TRAP_UNREACHABLE:
            throw Trap{"makes no sense"};
        default:
            throw Trap{"trips the decoder"};
    }
}

std::uint32_t wasm_rt_register_func_type(std::uint32_t params, std::uint32_t results, ...) {
    // Called only by init_module, once. Equal signatures must get equal numbers.
    static std::vector<std::string> known;
    std::string signature(1, static_cast<char>(params));
    std::va_list types;
    va_start(types, results);
    for (std::uint32_t i = 0; i < params + results; ++i) signature += static_cast<char>(va_arg(types, int));
    va_end(types);
    const auto found = std::find(known.begin(), known.end(), signature);
    if (found == known.end()) {
        known.push_back(std::move(signature));
        return static_cast<std::uint32_t>(known.size());
    }
    return static_cast<std::uint32_t>(found - known.begin() + 1);
}

void wasm_rt_allocate_memory(wasm_rt_memory_t* memory, std::uint32_t pages, std::uint32_t max_pages) {
    void* data = ::mmap(nullptr, citysplat::io::kHeapBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    *memory = {static_cast<std::uint8_t*>(data), pages, max_pages, citysplat::io::kHeapBytes};
}

std::uint32_t wasm_rt_grow_memory(wasm_rt_memory_t* memory, std::uint32_t pages) {
    const std::uint32_t before = memory->pages;
    if (pages > citysplat::io::kHeapBytes / citysplat::io::kPageBytes - before) return 0xffffffffu;
    memory->pages += pages;
    return before;
}

void wasm_rt_free_memory(wasm_rt_memory_t* memory) {
    if (memory->data) ::munmap(memory->data, citysplat::io::kHeapBytes);
}

void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t* table, std::uint32_t size,
                                    std::uint32_t max_size) {
    *table = {new wasm_rt_funcref_t[size](), max_size, size};
}

void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t* table) { delete[] table->data; }

// What laz-perf imports.
std::uint32_t Z_envZ___cxa_allocate_exception(Z_env_instance_t* env, std::uint32_t bytes) {
    constexpr std::uint32_t kHeader = 24;
    return Z_lazperfZ_malloc(&env->module, bytes + kHeader) + kHeader;
}
void Z_envZ___cxa_throw(Z_env_instance_t* env, std::uint32_t exception, std::uint32_t, std::uint32_t) {
    const auto& memory = env->module.w2c_memory;
    std::uint32_t message = 0;  // std::runtime_error: {vtable, const char*}
    if (exception <= memory.size - 8) std::memcpy(&message, memory.data + exception + 4, 4);
    throw Trap{"is refused: " + env->text(message)};
}
void Z_envZ_abort(Z_env_instance_t*) { throw Trap{"makes the decoder give up"}; }
void Z_envZ_emscripten_memcpy_big(Z_env_instance_t* env, std::uint32_t to, std::uint32_t from,
                                  std::uint32_t bytes) {
    const auto& memory = env->module.w2c_memory;
    if (bytes > memory.size || to > memory.size - bytes || from > memory.size - bytes)
        wasm_rt_trap(WASM_RT_TRAP_OOB);
    std::memmove(memory.data + to, memory.data + from, bytes);
}
std::uint32_t Z_envZ_emscripten_resize_heap(Z_env_instance_t* env, std::uint32_t bytes) {
    auto& memory = env->module.w2c_memory;
    const auto pages = static_cast<std::uint32_t>((std::uint64_t{bytes} + citysplat::io::kPageBytes - 1) /
                                                  citysplat::io::kPageBytes);
    return pages <= memory.pages || wasm_rt_grow_memory(&memory, pages - memory.pages) != 0xffffffffu;
}
// Many parameters: as the module imports them.
void Z_envZ__embind_register_class(Z_env_instance_t* env, std::uint32_t type, std::uint32_t, std::uint32_t,
                                   std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                                   std::uint32_t, std::uint32_t, std::uint32_t name, std::uint32_t,
                                   std::uint32_t) {
    env->classes.push_back({type, env->text(name)});
}
void Z_envZ__embind_register_class_constructor(Z_env_instance_t* env, std::uint32_t type, std::uint32_t,
                                               std::uint32_t, std::uint32_t, std::uint32_t invoker,
                                               std::uint32_t constructor) {
    for (auto& c : env->classes)
        if (c.type == type) c.constructor_invoker = invoker, c.constructor = constructor;
}
// Many parameters: as above.
void Z_envZ__embind_register_class_function(Z_env_instance_t* env, std::uint32_t type, std::uint32_t name,
                                            std::uint32_t, std::uint32_t, std::uint32_t,
                                            std::uint32_t invoker, std::uint32_t context, std::uint32_t) {
    env->methods.push_back({type, invoker, context, env->text(name)});
}
// Many parameters: as above.
void Z_envZ__embind_register_bigint(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t,
                                    std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_bool(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t,
                                  std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_emval(Z_env_instance_t*, std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_float(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_integer(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t,
                                     std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_memory_view(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_std_string(Z_env_instance_t*, std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_std_wstring(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t) {}
void Z_envZ__embind_register_void(Z_env_instance_t*, std::uint32_t, std::uint32_t) {}
// Six parameters: as above.
std::uint32_t Z_envZ_strftime_l(Z_env_instance_t*, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                                std::uint32_t) {
    return 0;
}
// Files and environment: there are none.
constexpr std::uint32_t kBadDescriptor = 8, kNotSupported = 52;
std::uint32_t Z_wasi_snapshot_preview1Z_environ_get(Z_wasi_snapshot_preview1_instance_t*, std::uint32_t,
                                                    std::uint32_t) {
    return kNotSupported;
}
std::uint32_t Z_wasi_snapshot_preview1Z_environ_sizes_get(Z_wasi_snapshot_preview1_instance_t*, std::uint32_t,
                                                          std::uint32_t) {
    return kNotSupported;
}
std::uint32_t Z_wasi_snapshot_preview1Z_fd_close(Z_wasi_snapshot_preview1_instance_t*, std::uint32_t) {
    return kBadDescriptor;
}
// Six parameters: as above.
std::uint32_t Z_wasi_snapshot_preview1Z_fd_seek(Z_wasi_snapshot_preview1_instance_t*, std::uint32_t,
                                                std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t) {
    return kBadDescriptor;
}
std::uint32_t Z_wasi_snapshot_preview1Z_fd_write(Z_wasi_snapshot_preview1_instance_t*, std::uint32_t,
                                                 std::uint32_t, std::uint32_t, std::uint32_t) {
    return kBadDescriptor;
}

}  // extern "C"

namespace citysplat::io {

namespace {

/// One instance of the module with its "ChunkDecoder" object. For one thread.
class Decoder {
  public:
    Decoder() {
        static std::once_flag once;
        std::call_once(once, [] { Z_lazperf_init_module(); });
        auto& module = env_.module;
        Z_lazperf_instantiate(&module, &env_, &wasi_);
        Z_lazperfZ_emscripten_stack_init(&module);
        Z_lazperfZ___wasm_call_ctors(&module);
        if (env_.methods.empty()) Z_lazperfZ__embind_initialize_bindings(&module);
        for (const auto& c : env_.classes)
            if (c.name == "ChunkDecoder") bind(c);
        point_ = Z_lazperfZ_malloc(&module, kPageBytes);
        if (!open_ || !next_ || !point_) throw Trap{"cannot be decoded: laz-perf lacks ChunkDecoder"};
    }
    ~Decoder() {
        // The module frees its heap, and knows nothing of what lies behind it.
        if (chunk_room_) ::munmap(env_.module.w2c_memory.data + kHeapBytes, chunk_room_);
        Z_lazperf_free(&env_.module);
    }
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    void decode(std::span<const std::byte> chunk, const LazChunkLayout& layout,
                const std::function<void(std::span<const std::byte>)>& take) {
        place(chunk);
        using Open =
            void (*)(void*, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t);
        using Next = void (*)(void*, std::uint32_t, std::uint32_t, std::uint32_t);
        call<Open>(open_->invoker)(&env_.module, open_->context, object_,
                                   static_cast<std::uint32_t>(layout.point_format),
                                   static_cast<std::uint32_t>(layout.record_bytes), kHeapBytes);
        const Next next = call<Next>(next_->invoker);
        const std::size_t bytes = layout.record_bytes, piece = std::max<std::size_t>(1, kPieceBytes / bytes);
        buffer_.resize(std::min(piece, layout.points) * bytes);
        for (std::size_t done = 0; done < layout.points;) {
            const std::size_t now = std::min(piece, layout.points - done);
            for (std::size_t i = 0; i < now; ++i) {
                next(&env_.module, next_->context, object_, point_);
                std::memcpy(buffer_.data() + i * bytes, env_.module.w2c_memory.data + point_, bytes);
            }
            take(std::span(buffer_.data(), now * bytes));
            done += now;
        }
    }

  private:
    void bind(const Z_env_instance_t::Class& c) {
        for (const auto& m : env_.methods) {
            if (m.type == c.type && m.name == "open") open_ = m;
            if (m.type == c.type && m.name == "getPoint") next_ = m;
        }
        object_ =
            call<std::uint32_t (*)(void*, std::uint32_t)>(c.constructor_invoker)(&env_.module, c.constructor);
    }

    /// A function of the module's table, by the number that embind was given.
    template <class Function>
    Function call(std::uint32_t index) const {
        const auto& table = env_.module.w2c___indirect_function_table;
        if (index >= table.size || !table.data[index].func)
            throw Trap{"cannot be decoded: laz-perf has another interface"};
        return reinterpret_cast<Function>(table.data[index].func);
    }

    void place(std::span<const std::byte> chunk) {
        auto& memory = env_.module.w2c_memory;
        if (chunk.size() > kMaxChunkBytes) throw Trap{"is larger than the decoder's memory"};
        if (chunk.size() > chunk_room_) {
            const std::size_t room = (chunk.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
            void* moved = ::mremap(memory.data, kHeapBytes + chunk_room_, kHeapBytes + room, MREMAP_MAYMOVE);
            if (moved == MAP_FAILED) throw std::bad_alloc();
            memory.data = static_cast<std::uint8_t*>(moved);
            chunk_room_ = room;
        }
        std::memcpy(memory.data + kHeapBytes, chunk.data(), chunk.size());
        memory.size = static_cast<std::uint32_t>(kHeapBytes + chunk.size());
    }

    Z_env_instance_t env_;
    Z_wasi_snapshot_preview1_instance_t wasi_;
    std::optional<Z_env_instance_t::Method> open_, next_;
    std::uint32_t object_ = 0, point_ = 0;
    std::size_t chunk_room_ = 0;  ///< mapped behind the heap
    std::vector<std::byte> buffer_;
};

}  // namespace

bool laz_available() { return true; }
std::string laz_advice() { return {}; }

void decode_laz_chunk(std::span<const std::byte> chunk, const LazChunkLayout& layout,
                      const std::string& where, const std::function<void(std::span<const std::byte>)>& take) {
    // Starting an instance costs as much as decoding some hundred points: keep one per thread.
    static thread_local std::unique_ptr<Decoder> decoder;
    try {
        if (!decoder) decoder = std::make_unique<Decoder>();
        decoder->decode(chunk, layout, take);
    } catch (const Trap& trap) {
        decoder.reset();
        throw InputError(where + " " + trap.what);
    } catch (...) {
        decoder.reset();
        throw;
    }
}

}  // namespace citysplat::io
