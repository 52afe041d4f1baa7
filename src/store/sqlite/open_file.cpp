#include "store/sqlite/open_file.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

namespace idem::sqlite {
namespace {

std::string name_of(sqlite3* db) {
  const char* const name = sqlite3_db_filename(db, "main");
  return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

// A file that is not there at the start (a log that is written elsewhere) is not missed later.
OpenFile::Named::Named(std::string where) : path(std::move(where)) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    path.clear();
    return;
  }
  device = found.st_dev;
  inode = found.st_ino;
}

bool OpenFile::Named::is_there() const {
  if (path.empty()) return true;
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && found.st_dev == device && found.st_ino == inode;
}

// The log is beside the file itself, also if the path is a link.
OpenFile::OpenFile(sqlite3* db, std::string path)
    : file_(path.empty() ? name_of(db) : std::move(path)), log_(name_of(db) + "-wal") {}

std::string OpenFile::what_is_wrong() const {
  for (const Named* const one : {&file_, &log_}) {
    if (one->is_there()) continue;
    return one->path + " was moved, replaced or deleted while the store had it open";
  }
  return {};
}

}  // namespace idem::sqlite
