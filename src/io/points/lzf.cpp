#include "io/points/lzf.hpp"

#include <cstring>

namespace citysplat::io {

bool lzf_decompress(std::span<const std::byte> in, std::span<std::byte> out) {
    std::size_t from = 0, to = 0;
    while (from < in.size()) {
        const auto control = static_cast<std::size_t>(in[from++]);
        if (control < 32) {
            const std::size_t n = control + 1;
            if (n > in.size() - from || n > out.size() - to) return false;
            std::memcpy(out.data() + to, in.data() + from, n);
            from += n;
            to += n;
            continue;
        }
        std::size_t n = control >> 5;
        if (n == 7) {
            if (from == in.size()) return false;
            n += static_cast<std::size_t>(in[from++]);
        }
        n += 2;
        if (from == in.size()) return false;
        const std::size_t back = ((control & 31) << 8 | static_cast<std::size_t>(in[from++])) + 1;
        if (back > to || n > out.size() - to) return false;
        for (std::size_t i = 0; i < n; ++i) out[to + i] = out[to + i - back];  // may overlap itself
        to += n;
    }
    return to == out.size();
}

}  // namespace citysplat::io
