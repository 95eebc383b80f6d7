#include "bench/bench_main.hpp"

#include "citysplat/number_flags.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/printable.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

namespace citysplat::bench {

void Flags::required(const std::string& name, std::string& value, const std::string& what) {
    app_.add_option(name, value, what)->required()->type_name("");
}

void Flags::required(const std::string& name, std::vector<std::string>& values, const std::string& what) {
    app_.add_option(name, values, what)->required()->type_name("");
}

void Flags::text(const std::string& name, std::string& value, const std::string& what) {
    app_.add_option(name, value, what)->type_name(name.starts_with('-') ? "PATH" : "");
}

void Flags::texts(const std::string& name, std::vector<std::string>& values, const std::string& what) {
    app_.add_option(name, values, what)->type_name("");
}

void Flags::one_of(const std::string& name, std::string& value, const std::vector<std::string>& words,
                   const std::string& what) {
    app_.add_option(name, value, what)->check(CLI::IsMember(words))->type_name("");
}

void Flags::count(const std::string& name, std::uint64_t& value, std::uint64_t most,
                  const std::string& what) {
    app_.add_option(name, value, what)
        ->check(cli::whole_from(std::uint64_t{1}, most))
        ->type_name("N")
        ->capture_default_str();
}

void Flags::number(const std::string& name, double& value, const NumberRange& range,
                   const std::string& what) {
    app_.add_option(name, value, what)->check(cli::in_range(range))->type_name("X")->capture_default_str();
}

void Flags::flag(const std::string& name, bool& value, const std::string& what) {
    app_.add_flag(name, value, what);
}

namespace {

int parse_and_run(const Program& program, int argc, char** argv) {
    CLI::App app(program.about, program.name);
    std::string table;
    Flags flags(app);
    program.flags(flags);
    flags.text("--table", table, "append the rows of the README's table to this file, as Markdown");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        throw UsageError(std::string(e.what()) + " (see " + program.name + " --help)");
    }
    Report report(table);
    program.run(report);
    if (std::fflush(stdout) != 0) throw IoError("cannot write the figures to stdout");
    return 0;
}

int fail(const Program& program, ErrorKind kind, const std::string& message) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), printable(message).c_str());
    return static_cast<int>(kind);
}

}  // namespace

int run_bench(const Program& program, int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        raise_descriptor_limit();
        return parse_and_run(program, argc, argv);
    } catch (const Error& e) {
        return fail(program, e.kind(), e.what());
    } catch (const std::filesystem::filesystem_error& e) {
        return fail(program, ErrorKind::io, "cannot use " + e.path1().string() + ": " + e.code().message());
    } catch (const std::bad_alloc&) {
        return fail(program, ErrorKind::io, "out of memory; give a smaller input");
    } catch (const std::exception& e) {
        return fail(program, ErrorKind::io, std::string("internal error: ") + e.what());
    }
}

}  // namespace citysplat::bench
