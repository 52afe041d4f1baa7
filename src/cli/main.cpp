#include "cli/commands.hpp"

int main(int argc, char** argv) { return idem::cli::run(argc, argv); }
