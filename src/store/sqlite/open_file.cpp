#include "store/sqlite/open_file.hpp"

#include <sqlite3.h>

namespace idem::sqlite {
namespace {

std::string name_of(sqlite3* db) {
  const char* const name = sqlite3_db_filename(db, "main");
  return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

// The log is beside the file itself, also if the path is a link.
OpenFile::OpenFile(sqlite3* db, std::string path)
    : log_path_(name_of(db) + "-wal"),
      file_(path.empty() ? name_of(db) : std::move(path)),
      // It is not there if another log than the usual one is in use.
      log_(log_path_) {}

std::string OpenFile::what_is_wrong() const {
  std::string wrong = file_.what_is_wrong();
  return wrong.empty() ? log_.what_is_wrong() : wrong;
}

}  // namespace idem::sqlite
