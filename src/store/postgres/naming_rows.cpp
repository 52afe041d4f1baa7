#include "store/postgres/naming_rows.hpp"

#include "store/postgres/cells.hpp"

#include <idem/limits.hpp>

namespace idem::postgres {
namespace {

template <class Text>
void add_texts(Params& params, const std::vector<RouteName>& routes, Text text) {
  params.array(Type::text_array);
  for (const RouteName& route : routes) params.append_text(as_text(text(route)));
}

}  // namespace

Task<std::expected<Naming, Failure>> read_naming(Connection& connection) {
  const Params none;
  const QueryResult identity = co_await connection.ask(
      "SELECT generation, key_scope, key_fields FROM idem.identity", none, limits::store_reply_max);
  if (!identity) co_return std::unexpected(identity.error());
  if (identity->size() != 1) co_return std::unexpected(Failure{"IDM08", "no identity"});
  Naming naming;
  Cells cells(*identity, 0);
  naming.generation = static_cast<std::uint64_t>(cells.number());
  naming.by_operation = cells.bytes() == "operation";
  naming.key_fields = split_names(cells.text(), ' ');
  const QueryResult routes = co_await connection.ask(
      "SELECT methods, pattern, name, formerly FROM idem.route_names ORDER BY position", none,
      limits::store_reply_max);
  if (!routes) co_return std::unexpected(routes.error());
  for (int row = 0; row < routes->size(); ++row) {
    Cells of(*routes, row);
    RouteName route;
    route.methods = split_names(of.text(), ' ');
    route.pattern = of.text();
    route.name = of.text();
    route.formerly = split_names(of.text(), '\n');
    naming.routes.push_back(std::move(route));
  }
  co_return naming;
}

Task<QueryResult> write_naming(Connection& connection, const Naming& naming) {
  Params params;
  params.number(static_cast<std::int64_t>(naming.generation))
      .text(as_text(joined_names(naming.key_fields, ' ')));
  add_texts(params, naming.routes, [](auto& route) { return joined_names(route.methods, ' '); });
  add_texts(params, naming.routes, [](auto& route) { return route.pattern; });
  add_texts(params, naming.routes, [](auto& route) { return route.name; });
  add_texts(params, naming.routes, [](auto& route) { return joined_names(route.formerly, '\n'); });
  co_return co_await connection.ask("SELECT idem.record_naming($1, $2, $3, $4, $5, $6)", params,
                                    limits::store_reply_max);
}

}  // namespace idem::postgres
