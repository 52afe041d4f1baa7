#pragma once

#include "store/mysql/connection.hpp"

/// The schema in a database, and the one that this program needs. A server cannot undo a change of
/// tables, so each is noted before it begins and when it is done: what a crash has cut off is made
/// again.
namespace idem::mysql {

struct SchemaFound {
  int version = 0;            ///< Of the tables; 0: there are none.
  int begun = 0;              ///< The last version of the tables that any program began to make.
  bool is_cut_off = false;    ///< A change of the tables was begun, and did not end.
  bool was_made = false;      ///< Functions were applied, which is the last step of the making.
  std::string checksum{};     ///< Of the functions.
  std::string program{};      ///< That applied them.
  bool has_had_ours = false;  ///< This program's functions are there, or were.
  bool is_newer = false;      ///< That program is newer than this one.
};

/// The error is for people: what is there is no schema of Idem.
Task<std::expected<SchemaFound, std::string>> find_schema(Connection& connection);

/// A sentence: why this program cannot use the schema, or, without `may_change`, may not upgrade
/// it. An empty database is no reason, and neither is a schema whose making was cut off.
std::optional<std::string> why_unusable(const SchemaFound& found, bool may_change);

/// Makes or upgrades the tables, and replaces the functions if they are others. Under the lock of
/// all starts. Returns why it failed.
Task<std::optional<std::string>> bring_schema(Connection& connection, const SchemaFound& found,
                                              bool is_mariadb);

}  // namespace idem::mysql
