#include "sim/output/file_queue.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace citysplat;
using namespace citysplat::sim;

namespace {

std::string content_of(std::size_t i) {
    return std::string(1 + i * 37 % 900, static_cast<char>('a' + i % 26)) + std::to_string(i);
}

void put_text(FileQueue& queue, const std::filesystem::path& path, const std::string& text) {
    FileQueue::Block block = queue.take(text.size());
    std::memcpy(block.data(), text.data(), text.size());
    queue.put(path, std::move(block), text.size());
}

}  // namespace

TEST_CASE("files of a queue are whole, whoever puts them, and the budget holds") {
    constexpr std::size_t kThreads = 4, kFiles = 50;
    for (const unsigned writers : {1u, 3u}) {
        const test::TempDir directory;
        FileQueue queue({.budget_bytes = 4000, .threads = writers});
        std::vector<std::thread> makers;
        for (std::size_t t = 0; t < kThreads; ++t)
            makers.emplace_back([&, t] {
                for (std::size_t i = t; i < kFiles; i += kThreads)
                    put_text(queue, directory / std::to_string(i), content_of(i));
            });
        for (std::thread& maker : makers) maker.join();
        queue.finish();
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < kFiles; ++i) {
            CHECK(read_text_file(directory / std::to_string(i)) == content_of(i));
            bytes += content_of(i).size();
        }
        CHECK(queue.written_bytes() == bytes);
        CHECK(queue.peak_bytes() <= 4000);
    }
}

TEST_CASE("a file larger than the budget of a queue is written, alone") {
    const test::TempDir directory;
    FileQueue queue({.budget_bytes = 100});
    const std::string large(1000, 'x');
    for (const char* name : {"a", "b", "c"}) put_text(queue, directory / name, large);
    queue.finish();
    CHECK(read_text_file(directory / "c") == large);
    CHECK(queue.peak_bytes() == 1000);
}

TEST_CASE("a block may hold several files") {
    const test::TempDir directory;
    FileQueue queue({});
    FileQueue::Block block = queue.take(6);
    std::memcpy(block.data(), "onetwo", 6);
    const std::byte* at = block.data();
    queue.put({{directory / "1", {at, 3}}, {directory / "2", {at + 3, 3}}, {directory / "0", {at, 0u}}},
              std::move(block));
    queue.finish();
    CHECK(read_text_file(directory / "1") == "one");
    CHECK(read_text_file(directory / "2") == "two");
    CHECK(read_text_file(directory / "0").empty());
    CHECK(queue.written_bytes() == 6);
}

TEST_CASE("a block that is not put gives its room back") {
    const test::TempDir directory;
    FileQueue queue({.budget_bytes = 100});
    for (int i = 0; i < 3; ++i) queue.take(80);  // the second would wait for ever
    put_text(queue, directory / "a", std::string(90, 'x'));
    queue.finish();
    CHECK(queue.peak_bytes() <= 100);
}

TEST_CASE("a file that cannot be written ends its queue with the name and what the system said") {
    const test::TempDir directory;
    FileQueue queue({});
    put_text(queue, directory / "good", "1");
    queue.finish();
    put_text(queue, directory / "no/such/folder", "2");
    CHECK_THROWS_WITH(queue.finish(), Catch::Contains("no/such/folder") && Catch::Contains("No such file"));
    CHECK_THROWS_AS(queue.take(1), IoError);
    CHECK_THROWS_AS(queue.finish(), IoError);
    CHECK(read_text_file(directory / "good") == "1");
}

TEST_CASE("a queue that goes away leaves whole files only") {
    const test::TempDir directory;
    constexpr std::size_t kBytes = 200'000;
    {
        FileQueue queue({});
        for (std::size_t i = 0; i < 40; ++i)
            put_text(queue, directory / std::to_string(i), std::string(kBytes, 'x'));
    }
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
        CHECK(entry.file_size() == kBytes);
}
