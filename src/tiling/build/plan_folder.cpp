#include "tiling/build/plan_folder.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace citysplat::tiling {

namespace fs = std::filesystem;

namespace {

fs::path current_path(const CityPaths& paths) { return paths.plans() / "current"; }
fs::path costs_path(const CityPaths& paths) { return paths.plans() / "costs"; }

void write_text(const fs::path& path, const std::string& text) {
    write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

/// The hashes in a file of plans/, one a line. Nothing when it is not there or holds anything else.
std::optional<std::vector<Hash128>> read_names(const fs::path& path) {
    std::string text;
    try {
        text = read_text_file(path);
    } catch (const IoError&) {
        return std::nullopt;
    }
    std::vector<Hash128> names;
    for (std::size_t at = 0; at < text.size(); at += 33) {
        const auto name = Hash128::from_hex(std::string_view(text).substr(at, 32));
        if (!name || at + 32 >= text.size() || text[at + 32] != '\n') return std::nullopt;
        names.push_back(*name);
    }
    return names;
}

/// The regular files of a directory by name, sorted; nothing when it is not there.
std::vector<std::string> files_in(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(directory, gone))
        if (std::error_code error; entry.is_regular_file(error))
            names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

constexpr std::string_view kReceipt = "receipt-", kFailure = "tile-", kVoid = "void-", kHeld = "held";

/// A whole file of this kind. While it is written its name has something behind it.
bool is_whole(std::string_view name, std::string_view kind) {
    return name.starts_with(kind) && name.size() == kind.size() + 32;
}

bool is_remainder(std::string_view name, std::string_view kind) {
    return name.starts_with(kind) || name.starts_with(std::string(kVoid) + std::string(kind));
}

std::optional<TileKey> tile_from(const std::string& text) {
    TileKey tile;
    char first = 0, second = 0;
    std::istringstream in(text);
    if (!(in >> tile.level >> first >> tile.ix >> second >> tile.iy) || first != '/' || second != '/')
        return std::nullopt;
    for (const ProductKind kind : {ProductKind::splats, ProductKind::mesh}) {
        tile.kind = kind;
        if (tile.text() == text) return tile;
    }
    return std::nullopt;
}

/// "12" or "12.1": chunk and copy of a claim.
std::optional<std::pair<std::size_t, int>> claim_from(std::string_view name) {
    std::size_t chunk = 0;
    int copy = 0;
    const auto parse = [](std::string_view text, auto& value) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size();
    };
    const std::size_t dot = std::min(name.find('.'), name.size());
    if (!parse(name.substr(0, dot), chunk)) return std::nullopt;
    if (dot < name.size() && !parse(name.substr(dot + 1), copy)) return std::nullopt;
    return std::pair{chunk, copy};
}

std::string claim_name(std::size_t chunk, int copy) {
    return std::to_string(chunk) + (copy > 0 ? "." + std::to_string(copy) : "");
}

/// Host, process and when the process began: the first process of a container has the same number each time.
std::string owner_line() {
    static const std::string line =
        host_name() + " " + std::to_string(::getpid()) + " " +
        std::to_string(std::chrono::system_clock::now().time_since_epoch().count()) + "\n";
    return line;
}

/// Whether the process was of this host and has ended. False where nobody knows.
bool has_ended(const fs::path& claim) {
    std::string text, host;
    try {
        text = read_text_file(claim);
    } catch (const IoError&) {
        return false;
    }
    std::istringstream in(text);
    long process = 0, began = 0;
    if (!(in >> host >> process >> began) || host != host_name() || process < 1) return false;
    if (process == ::getpid()) return text != owner_line();
    return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
}

void remove_files(const fs::path& directory, const std::function<bool(const std::string&)>& ours) {
    for (const std::string& name : files_in(directory))
        if (ours(name)) fs::remove(directory / name);
    std::error_code not_empty;  // a directory with files of others stays
    fs::remove(directory, not_empty);
}

void remove_folder(const fs::path& folder) {
    remove_files(folder / "done", [](const std::string& name) { return is_remainder(name, kReceipt); });
    remove_files(folder / "claims", [](const std::string& name) { return claim_from(name).has_value(); });
    remove_files(folder / "failed", [](const std::string& name) { return is_remainder(name, kFailure); });
    remove_files(folder, [](const std::string& name) { return name.starts_with(kHeld); });
}

fs::path folder_of(const CityPaths& paths, const Hash128& plan) { return paths.plans() / plan.hex(); }

}  // namespace

std::optional<Hash128> name_of_open_plan(const CityPaths& paths) {
    const auto names = read_names(current_path(paths));
    return names && names->size() == 1 ? std::optional((*names)[0]) : std::nullopt;
}

std::optional<OpenPlan> read_open_plan(const ObjectStore& store) {
    const fs::path path = current_path(store.paths());
    if (!fs::exists(path)) return std::nullopt;
    const auto name = name_of_open_plan(store.paths());
    if (!name)
        throw CorruptionError(path.string() +
                              " is damaged; remove it and run citysplat plan: what was built is found again "
                              "as far as the catalog knows it");
    auto plan = read_plan(store, *name);
    if (!plan) return std::nullopt;
    return OpenPlan{*name, std::move(*plan)};
}

OpenPlan open_plan(ObjectStore& store, PlanRecord plan) {
    const CityPaths& paths = store.paths();
    const Hash128 name = write_plan(store, plan);
    store.flush();
    const auto before = name_of_open_plan(paths);
    const fs::path folder = folder_of(paths, name);
    for (const char* part : {"done", "claims", "failed"}) create_directories_durably(folder / part);
    // What killed processes left of these two; only who has the lock writes them.
    for (const std::string& file : files_in(paths.plans()))
        if (file.starts_with("current.tmp-") || file.starts_with("costs.tmp-"))
            fs::remove(paths.plans() / file);
    write_text(current_path(paths), name.hex() + "\n");
    if (before && *before != name) remove_folder(folder_of(paths, *before));
    return {name, std::move(plan)};
}

void close_plan(const CityPaths& paths) {
    const auto name = name_of_open_plan(paths);
    if (!name) return;
    fs::remove(current_path(paths));
    sync_directory(paths.plans());
    remove_folder(folder_of(paths, *name));
}

TileCosts read_costs(const CityPaths& paths) {
    // What a drive through a street took on a core of 2022, halos counted as points.
    TileCosts costs{1.3, 1'000'000, 2'700'000};
    if (!fs::exists(costs_path(paths))) return costs;
    TileCosts read;
    std::istringstream in(read_text_file(costs_path(paths)));
    in >> read.core_seconds >> read.points >> read.bytes;
    const bool sound = in && read.core_seconds > 0 && read.core_seconds < 1e12 && read.points > 0 &&
                       read.bytes < std::uint64_t{1} << 60;
    return sound ? read : costs;
}

void keep_costs(const CityPaths& paths, const TileCosts& costs) {
    constexpr std::uint64_t kEnoughPoints = 100'000;
    if (costs.points < kEnoughPoints || !(costs.core_seconds > 0)) return;
    std::ostringstream out;
    out << costs.core_seconds << ' ' << costs.points << ' ' << costs.bytes << '\n';
    try {
        write_text(costs_path(paths), out.str());
    } catch (const Error&) {
        // A hint: a full disk must not make a failure of a generation that was published.
    }
}

PlanFolder::PlanFolder(const ObjectStore& store, const Hash128& plan)
    : store_(store),
      plan_(plan),
      folder_(folder_of(store.paths(), plan)),
      done_(folder_ / "done"),
      claims_(folder_ / "claims"),
      failed_(folder_ / "failed") {}

void PlanFolder::hold(const std::string& objection) { write_text(folder_ / kHeld, objection + "\n"); }

std::optional<std::string> PlanFolder::held_back() const {
    const fs::path path = folder_ / kHeld;
    if (!fs::exists(path)) return std::nullopt;
    std::string text = read_text_file(path);
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

bool PlanFolder::exists() const { return fs::is_directory(done_); }

void PlanFolder::leave_receipt(ObjectStore& store, const ReceiptRecord& receipt) {
    const Hash128 name = write_receipt(store, receipt);
    store.flush();
    const std::string file = std::string(kReceipt) + name.hex();
    try {
        write_text(done_ / file, plan_.hex() + "\n" + name.hex() + "\n");
    } catch (const IoError&) {
        if (exists()) throw;
        throw BusyError(store.paths().root().string() +
                        ": the plan was closed while this worker was at it; run citysplat work again");
    }
    seen_.insert(file);
}

void PlanFolder::leave_failure(const TileKey& tile, const std::string& message) {
    if (!exists()) return;  // the plan was closed
    const std::string text = tile.text() + "\n" + host_name() + "\n" + message + "\n";
    write_text(failed_ / (std::string(kFailure) + Hasher().text(text).finish().hex()), text);
}

void PlanFolder::read_receipts(const std::function<void(const ReceiptRecord&)>& visit) {
    unreadable_.clear();
    for (const std::string& file : files_in(done_)) {
        if (!is_whole(file, kReceipt) || seen_.contains(file)) continue;
        const auto names = read_names(done_ / file);
        std::optional<ReceiptRecord> receipt;
        try {
            if (names && names->size() == 2 && (*names)[0] == plan_)
                receipt = read_receipt(store_, (*names)[1]);
        } catch (const CorruptionError&) {
        } catch (const IoError&) {
        }
        if (!receipt || receipt->plan != plan_) {
            unreadable_.push_back((done_ / file).string());
            continue;
        }
        seen_.insert(file);
        visit(*receipt);
    }
}

void PlanFolder::void_receipts(const std::set<TileKey>& tiles) {
    for (const std::string& file : files_in(done_)) {
        const auto names = read_names(done_ / file);
        if (!is_whole(file, kReceipt) || !names || names->size() != 2) continue;
        const auto concerned = [&] {
            try {
                const ReceiptRecord receipt = read_receipt(store_, (*names)[1]);
                return std::any_of(receipt.done.begin(), receipt.done.end(),
                                   [&](const TileKey& tile) { return tiles.contains(tile); });
            } catch (const CorruptionError&) {
                return false;  // nobody takes anything from a damaged receipt
            }
        };
        if (concerned()) fs::rename(done_ / file, done_ / (std::string(kVoid) + file));
    }
    sync_directory(done_);
}

std::vector<Hash128> PlanFolder::receipt_objects() const {
    std::vector<Hash128> objects;
    for (const std::string& file : files_in(done_))
        if (const auto names = read_names(done_ / file);
            is_whole(file, kReceipt) && names && names->size() == 2)
            objects.push_back((*names)[1]);
    return objects;
}

std::vector<FailedTile> PlanFolder::failures() const {
    std::vector<FailedTile> failures;
    for (const std::string& file : files_in(failed_)) {
        if (!is_whole(file, kFailure)) continue;
        std::string text;
        try {
            text = read_text_file(failed_ / file);
        } catch (const IoError&) {
            continue;  // it is not here yet, or the plan was closed
        }
        std::istringstream in(text);
        std::string tile, host, message;
        std::getline(in, tile), std::getline(in, host), std::getline(in, message, '\0');
        const auto key = tile_from(tile);
        if (!message.empty() && message.back() == '\n') message.pop_back();
        if (key) failures.push_back({*key, host, message});
    }
    return failures;
}

void PlanFolder::forget_failures() const {
    for (const std::string& file : files_in(failed_))
        if (is_remainder(file, kFailure)) fs::remove(failed_ / file);
}

std::optional<PlanFolder::Claim> PlanFolder::claim(std::size_t chunk, int copy) {
    const fs::path path = claims_ / claim_name(chunk, copy);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        if (errno == EEXIST || errno == ENOENT) return std::nullopt;  // taken, or the plan was closed
        throw_errno("cannot create", path);
    }
    const std::string owner = owner_line();
    [[maybe_unused]] const auto written = ::write(fd, owner.data(), owner.size());  // a hint, as the claim is
    ::close(fd);
    return Claim(path);
}

void PlanFolder::drop_claim(std::size_t chunk, int copy) {
    std::error_code gone;
    fs::remove(claims_ / claim_name(chunk, copy), gone);
}

PlanFolder::Claim::~Claim() {
    std::error_code gone;
    if (!path_.empty()) fs::remove(path_, gone);
}

void PlanFolder::Claim::touch() const { ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0); }

std::vector<PlanFolder::ClaimState> PlanFolder::claims() const {
    // Ages are measured by the clock of the file system, with a file that is touched now: the clocks of hosts
    // differ.
    const fs::path clock = store_.paths().new_temporary();
    std::error_code error;
    auto now = fs::file_time_type::clock::now();
    try {
        { const File touched(clock, File::Mode::create_new); }
        const auto touched_at = fs::last_write_time(clock, error);
        if (!error) now = touched_at;  // else a builder has cleaned up
        fs::remove(clock, error);
    } catch (const Error&) {
        // Who may only read, or finds the disk full, takes its own clock.
    }
    std::vector<ClaimState> states;
    for (const std::string& name : files_in(claims_)) {
        const auto parsed = claim_from(name);
        const auto touched = fs::last_write_time(claims_ / name, error);
        if (!parsed || error) continue;
        states.push_back({parsed->first, parsed->second,
                          std::max(0.0, std::chrono::duration<double>(now - touched).count()),
                          has_ended(claims_ / name)});
    }
    return states;
}

PlanStatus status_of(const ObjectStore& store, const OpenPlan& open) {
    PlanFolder folder(store, open.name);
    PlanStatus status;
    status.tiles = open.plan.planned.size();
    std::set<TileKey> done;
    double done_s = 0;
    folder.read_receipts([&](const ReceiptRecord& receipt) {
        done.insert(receipt.done.begin(), receipt.done.end());
        status.core_seconds_spent += receipt.costs.core_seconds;
    });
    for (const PlannedTile& tile : open.plan.planned) {
        const double seconds = open.plan.costs.seconds_of(tile.points_at_most);
        if (done.contains(tile.key)) {
            ++status.tiles_done;
            done_s += seconds;
        } else {
            status.core_seconds_left += seconds;
        }
    }
    for (const FailedTile& failed : folder.failures())
        if (!done.contains(failed.tile)) status.failed.push_back(failed);
    status.claims = folder.claims();
    // The estimates may be wrong by a factor, which the tiles that are done tell.
    if (done_s > 0 && status.core_seconds_spent > 0)
        status.core_seconds_left *= status.core_seconds_spent / done_s;
    return status;
}

PlanNeeds needs_of_plan(const ObjectStore& store) {
    PlanNeeds needs;
    const auto open = read_open_plan(store);
    if (!open) return needs;
    std::error_code error;
    needs.young_since = fs::last_write_time(current_path(store.paths()), error);
    needs.objects.insert(open->name);
    const auto add_payloads = [&needs](const std::vector<ProductRow>& tiles) {
        for (const ProductRow& tile : tiles)
            if (tile.object) needs.objects.insert(*tile.object);
    };
    add_payloads(open->plan.draft.tiles);
    add_payloads(open->plan.memo);
    for (const CitySource& source : open->plan.sources) {
        needs.sources.insert(source.row.identity);
        needs.objects.insert(source.row.object);
    }
    const PlanFolder folder(store, open->name);
    for (const Hash128& object : folder.receipt_objects()) {
        needs.objects.insert(object);
        if (!store.size_of(object)) continue;
        // What the disk cannot give back now may be needed all the same: IoError ends gc.
        if (kind_of(store.open(object, "a receipt")) != ObjectKind::share) continue;
        try {
            add_payloads(read_receipt(store, object).made);
        } catch (const CorruptionError&) {
            // publish takes nothing from it
        }
    }
    return needs;
}

}  // namespace citysplat::tiling
