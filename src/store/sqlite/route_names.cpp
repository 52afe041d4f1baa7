#include "store/sqlite/route_names.hpp"

#include "store/sqlite/meta.hpp"

#include <idem/assert.hpp>

namespace idem::sqlite {
namespace {

constexpr std::string_view key_fields = "key_fields";

}  // namespace

Naming read_naming(sqlite3* db, std::uint64_t generation, bool by_operation) {
  Naming naming{
      generation, by_operation, {}, split_names(Meta(db).text(key_fields).value_or(""), ' ')};
  Statement rows(db,
                 "SELECT methods, pattern, name, formerly FROM idem_route_names ORDER BY position");
  while (rows.step()) {
    naming.routes.push_back({.methods = split_names(rows.bytes(0), ' '),
                             .pattern = std::string(rows.bytes(1)),
                             .name = std::string(rows.bytes(2)),
                             .formerly = split_names(rows.bytes(3), '\n')});
  }
  return naming;
}

void write_naming(sqlite3* db, const Naming& naming) {
  IDEM_ASSERT(naming.generation > 0);
  Meta meta(db);
  meta.put_integer("generation", static_cast<std::int64_t>(naming.generation));
  meta.put_text(key_fields, joined_names(naming.key_fields, ' '));
  Statement(db, "DELETE FROM idem_route_names").run();
  Statement insert(db, "INSERT INTO idem_route_names VALUES (?1, ?2, ?3, ?4, ?5)");
  std::int64_t position = 0;
  for (const RouteName& route : naming.routes) {
    const std::string methods = joined_names(route.methods, ' ');
    const std::string formerly = joined_names(route.formerly, '\n');
    insert.bind(1, ++position);
    insert.bind_text(2, methods);
    insert.bind_text(3, route.pattern);
    insert.bind_text(4, route.name);
    insert.bind_text(5, formerly);
    insert.run();
  }
  meta.route_names_changed();
}

}  // namespace idem::sqlite
