// file_calls known|stdio|stream|mmap|fail DIRECTORY: changes files in the ways that the recorder knows, or
// one that it does not, or fails. For the tests of the recorder.

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

bool all_well = true;
void check(bool holds) { all_well = all_well && holds; }

int opened(const char* path, int flags) {
    const int fd = ::open(path, flags | O_CLOEXEC, 0666);
    check(fd >= 0);
    return fd;
}

void write_to(int fd, const std::string& text) {
    check(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void data_calls() {
    const int fd = opened("data", O_RDWR | O_CREAT | O_EXCL);
    write_to(fd, "0123456789");
    check(::pwrite(fd, "ab", 2, 4) == 2);
    std::string one = "one", two = "two";
    const iovec parts[2] = {{one.data(), one.size()}, {two.data(), two.size()}};
    check(::writev(fd, parts, 2) == 6);
    check(::pwritev(fd, parts, 2, 30) == 6);
    check(::ftruncate(fd, 33) == 0);
    check(::fallocate(fd, 0, 0, 40) == 0);
    check(::posix_fallocate(fd, 0, 50) == 0);
    check(::fsync(fd) == 0 && ::fdatasync(fd) == 0);

    const int copy = opened("copy", O_WRONLY | O_CREAT | O_TRUNC);
    check(::lseek(fd, 0, SEEK_SET) == 0);
    check(::sendfile(copy, fd, nullptr, 7) == 7);
    const int duplicate = ::dup(copy);
    ::close(copy);
    write_to(duplicate, "through another descriptor");
    ::close(duplicate);
    const int append = opened("copy", O_WRONLY | O_APPEND);
    write_to(append, "at the end");
    ::close(append);
    const int range = opened("range", O_WRONLY | O_CREAT);
    off_t from = 2, to = 5;
    check(::copy_file_range(fd, &from, range, &to, 9, 0) == 9);
    ::close(range);
    ::close(opened("copy2", O_WRONLY | O_CREAT));
    check(::truncate("copy2", 12) == 0);
    ::close(opened("copy2", O_WRONLY | O_TRUNC));

    check(::unlink("data") == 0);
    write_to(fd, "into a file without a name");
    ::close(fd);
    ::close(::creat("created", 0666));
}

void name_calls() {
    check(::mkdir("d", 0777) == 0);
    const int d = opened("d", O_RDONLY | O_DIRECTORY);
    check(::mkdirat(d, "e", 0777) == 0 && ::mkdirat(d, "f", 0777) == 0);
    const int file = ::openat(d, "e/file", O_WRONLY | O_CREAT, 0666);
    write_to(file, "a file");
    ::close(file);
    check(::link("d/e/file", "d/second") == 0 && ::linkat(d, "second", d, "f/third", 0) == 0);
    check(::rename("d/second", "d/./f/../renamed") == 0);
    check(::renameat(d, "renamed", AT_FDCWD, "up") == 0);
    check(::rename("d/e", "d/f/e") == 0);
    check(::unlinkat(d, "f/third", 0) == 0);
    check(::fsync(d) == 0);
    ::close(d);
    fs::create_directories("g/h/i");
    check(fs::create_directory("g/j") && ::rmdir("g/j") == 0);
    fs::copy_file("up", "g/h/copied");
    fs::resize_file("g/h/copied", 3);
    fs::rename("g/h", "k");
    check(fs::remove("g") && fs::remove("k/copied"));
    fs::create_directories("gone/with/everything");
    ::close(opened("gone/with/everything/file", O_WRONLY | O_CREAT));
    check(fs::remove_all("gone") == 4);
}

void stdio_call() {
    std::FILE* file = std::fopen("unseen", "w");
    check(file && std::fputs("written inside of the C library", file) >= 0 && std::fclose(file) == 0);
}

void map_call() {
    const int fd = opened("mapped", O_RDWR | O_CREAT);
    check(::ftruncate(fd, 10) == 0);
    void* map = ::mmap(nullptr, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(map != MAP_FAILED);
    static_cast<char*>(map)[3] = 'x';
    ::munmap(map, 10);
    ::close(fd);
}

}  // namespace

int main(int, char** argv) {
    const std::string way = argv[1];
    fs::current_path(argv[2]);
    if (way == "known") data_calls(), name_calls();
    if (way == "stdio") stdio_call();
    if (way == "stream") std::ofstream("unseen") << "opened inside of the C library";
    if (way == "mmap") map_call();
    if (way == "fail") return 3;
    return all_well ? 0 : 1;
}
