#include "core/error.hpp"
#include "core/file.hpp"
#include "core/number_range.hpp"
#include "core/output_file.hpp"
#include "core/printable.hpp"
#include "temp_dir.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <limits>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace citysplat;
using test::TempDir;

TEST_CASE("only regular files are opened, and the others at once by their kind") {
    const TempDir dir;
    const auto fifo = dir / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    for (const auto mode : {File::Mode::read, File::Mode::truncate, File::Mode::read_write}) {
        CHECK_THROWS_WITH(File(fifo, mode), Catch::Contains("it is a FIFO, not a file"));
        CHECK_THROWS_WITH(File("/dev/zero", mode), Catch::Contains("it is a device, not a file"));
        CHECK_THROWS_WITH(File(dir.path(), mode), Catch::Contains("it is a directory, not a file"));
    }
    CHECK_THROWS_WITH(read_text_file("/dev/zero"), Catch::Contains("/dev/zero"));
    // Nor is memory taken for what cannot be meant: this one has holes only.
    std::ofstream(dir / "huge").put('1');
    std::filesystem::resize_file(dir / "huge", std::uint64_t{1} << 40);
    CHECK_THROWS_WITH(read_text_file(dir / "huge"), Catch::Contains("1.00 TiB are more"));
}

TEST_CASE("a file that is to be updated is not made") {
    const TempDir dir;
    CHECK_THROWS_WITH(File(dir / "a", File::Mode::update), Catch::Contains("cannot open"));
    CHECK_FALSE(std::filesystem::exists(dir / "a"));
    std::ofstream(dir / "a") << "old";
    File(dir / "a", File::Mode::update).write_at(0, std::as_bytes(std::span("new", 3)));
    CHECK(read_text_file(dir / "a") == "new");
}

TEST_CASE("an output file has its name only when it is whole") {
    const TempDir dir;
    const auto path = dir / "a.txt";
    const auto content = [&path] { return read_text_file(path); };
    std::ofstream(path) << "old";
    {
        OutputFile file(path);
        file.writer().text("half");
        file.writer().flush();
        CHECK(content() == "old");
        CHECK(std::filesystem::exists(file.partial()));
        CHECK_THROWS_AS(OutputFile(path), BusyError);
        CHECK(std::filesystem::exists(file.partial()));
    }
    CHECK(content() == "old");
    CHECK_FALSE(std::filesystem::exists(OutputFile::partial_of(path)));
    std::ofstream(OutputFile::partial_of(path)) << "of a process that was killed";
    {
        OutputFile file(path);
        file.writer().text("new");
        file.commit();
    }
    CHECK(content() == "new");
    CHECK_FALSE(std::filesystem::exists(OutputFile::partial_of(path)));
    CHECK_THROWS_WITH(OutputFile("/dev/null"), Catch::Contains("it is a device"));
    CHECK_THROWS_WITH(OutputFile(dir.path()), Catch::Contains("it is a directory"));
    CHECK_THROWS_AS(OutputFile(dir / "missing/a.txt"), IoError);
}

TEST_CASE("what another user's killed writer left is removed by who may write the directory") {
    if (::geteuid() != 0) {
        WARN("skipped: only root can be two users");
        return;
    }
    const test::TempDir dir;
    const std::filesystem::path path = dir / "a.txt";
    std::ofstream(OutputFile::partial_of(path)) << "of root";
    std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        constexpr uid_t kNobody = 65534;
        if (::seteuid(kNobody) != 0) ::_exit(2);
        try {
            OutputFile file(path);
            file.commit();
        } catch (const std::exception&) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(std::filesystem::exists(path));
}

TEST_CASE("bytes that are not UTF-8 are escaped, and text stays as it is") {
    CHECK(printable("Straße, 東京 😀\n\ta") == "Straße, 東京 😀\n\ta");
    CHECK(printable("caf\xe9") == "caf\\xE9");
    CHECK(printable(std::string("a\0b\033[31m\x7f", 9)) == "a\\x00b\\x1B[31m\\x7F");
    CHECK(printable("\xc2\x9b") == "\\xC2\\x9B");  // a control sequence in one character
    CHECK(as_utf8("tab\x01\xff") == "tab\x01\\xFF");
    // Overlong, surrogate, beyond the last, cut off.
    for (const char* bad :
         {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\x9d", "\x80"}) {
        CHECK_FALSE(is_utf8(bad));
        CHECK(is_utf8(as_utf8(bad)));
    }
    CHECK(is_utf8("\xed\x9f\xbf\xf4\x8f\xbf\xbf"));
}

TEST_CASE("a range holds finite numbers only, and texts are numbers as a whole or not at all") {
    constexpr NumberRange range{0.001, 10'000, "Hz"};
    CHECK(range.contains(10));
    for (const double bad :
         {0.0, 1e9, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        CHECK_FALSE(range.contains(bad));
    CHECK(range.text() == "from 0.001 to 10000 Hz");
    CHECK(parse_number("+1.5e3") == 1500.0);
    CHECK(parse_number("-2") == -2.0);
    for (const char* bad : {"", "+", "+-1", "1.5x", " 1", "1 ", "1,5", "0x10"})
        CHECK_FALSE(parse_number(bad));
    CHECK(parse_whole<int>("-7") == -7);
    for (const char* bad : {"", "1.0", "4294967297", "1e3", "+1"}) CHECK_FALSE(parse_whole<int>(bad));
    CHECK_FALSE(parse_whole<unsigned>("-1"));
}
