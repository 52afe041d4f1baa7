#include "cli/commands.hpp"

// jemalloc reads it before main(). A block of a mebibyte, as the canonical form of a large JSON
// body, goes back to the kernel once it is freed, instead of ten seconds of requests later.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "oversize_threshold:1048576";
}

int main(int argc, char** argv) { return idem::cli::run(argc, argv); }
