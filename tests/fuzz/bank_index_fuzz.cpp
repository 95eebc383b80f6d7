#include "index_check.hpp"
#include "objects/bank.hpp"

using namespace citysplat;
using citysplat::fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto objects = objects::parse_index(fuzz::sealed_index(data, size, "objects"), "fuzz");
        for (const objects::BankObject& o : objects) {
            for (const double extent : {o.size.length_m, o.size.width_m, o.size.height_m})
                expect(extent > 0 && std::isfinite(extent));
            for (const std::uint8_t percent : o.coverage) expect(percent <= 100);
            for (std::size_t a = 0; a < 3; ++a) expect(o.splats.box[a] <= o.splats.box[a + 3]);
        }
        (void)objects::choose(objects, {"", {4, 2, 1.5}, {0.5}, 1, "track"});
        // What was read is written as it was.
        const std::string text = objects::index_text(objects);
        expect(objects::index_text(objects::parse_index(text, "fuzz")) == text);
    } catch (const Error&) {
    }
    return 0;
}
