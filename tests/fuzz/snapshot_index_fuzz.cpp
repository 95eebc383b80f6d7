#include "index_check.hpp"
#include "objects/snapshots.hpp"

using namespace citysplat;
using citysplat::fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto frames = objects::parse_snapshot_index(fuzz::sealed_index(data, size, "frames"), "fuzz");
        for (const objects::Snapshot& s : frames) {
            expect(s.begin_s <= s.end_s);
            for (std::size_t a = 0; a < 3; ++a) expect(s.splats.box[a] <= s.splats.box[a + 3]);
        }
        const std::string text = objects::snapshot_index_text(frames);
        expect(objects::snapshot_index_text(objects::parse_snapshot_index(text, "fuzz")) == text);
    } catch (const Error&) {
    }
    return 0;
}
