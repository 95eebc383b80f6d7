// Nothing runs this program. It is there so that the headers of all tests are compiled once, with the flags
// of a program.
int main() {}
