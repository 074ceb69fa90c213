// A table of the state database and the struct that is one of its rows, from one list of columns:
//
//   template <typename Row, typename Visitor> void VisitColumns(Row& row, Visitor visit) { visit("round", row.round);
//   ... }
//
// That list makes the CREATE, the INSERT and the SELECT. A column is a number, a switch, text, an enum by its name, or
// one of the structures of core_json.h as JSON.
#ifndef AUTOLOCO_SERVER_STORAGE_TABLE_H_
#define AUTOLOCO_SERVER_STORAGE_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "server/core/lease.h"
#include "server/core/reasons.h"
#include "server/core/types.h"
#include "server/storage/core_json.h"
#include "server/storage/database.h"

namespace autoloco::server {

inline const char* EnumName(Reason value) { return ReasonName(value); }
inline const char* EnumName(PushOutcome value) { return PushOutcomeName(value); }
inline const char* EnumName(LeaseFate value) { return LeaseFateName(value); }

// The value of this name: enums are counted from 0 without gaps, and beyond them the name is "unknown".
template <typename Enum>
std::optional<Enum> EnumFromName(absl::string_view name) {
  for (int number = 0; EnumName(static_cast<Enum>(number)) != absl::string_view("unknown"); ++number) {
    if (name == EnumName(static_cast<Enum>(number))) return static_cast<Enum>(number);
  }
  return std::nullopt;
}

template <typename Column>
constexpr bool kIsReal = std::is_same_v<Column, double> || std::is_same_v<Column, std::optional<double>>;
template <typename Column>
constexpr bool kIsPlain = std::is_integral_v<Column> || kIsReal<Column> || std::is_same_v<Column, std::string>;

// "round INTEGER NOT NULL, worker TEXT NOT NULL, ..."
template <typename Row>
std::string ColumnsSql(bool with_types) {
  std::string sql;
  const auto visit = [&sql, with_types]<typename Column>(const char* name, const Column&) {
    absl::StrAppend(&sql, sql.empty() ? "" : ", ", name);
    if (!with_types) return;
    constexpr bool kOptional = std::is_same_v<Column, std::optional<double>>;
    absl::StrAppend(&sql,
                    std::is_integral_v<Column> ? " INTEGER"
                    : kIsReal<Column>          ? " REAL"
                                               : " TEXT",
                    kOptional ? "" : " NOT NULL");
  };
  static const Row& row = *new Row();
  VisitColumns(row, visit);
  return sql;
}

template <typename Row>
std::string CreateSql(absl::string_view table, absl::string_view primary_key) {
  return absl::StrCat("CREATE TABLE ", table, " (", ColumnsSql<Row>(true), ", PRIMARY KEY (", primary_key, "));\n");
}

// Binds every column of `row` to the statement's next parameters.
template <typename Row>
void BindRow(const Row& row, Statement* statement) {
  VisitColumns(row, [statement]<typename Column>(const char*, const Column& column) {
    if constexpr (kIsPlain<Column>) {
      statement->Bind(column);
    } else if constexpr (std::is_enum_v<Column>) {
      statement->Bind(EnumName(column));
    } else {
      statement->Bind(ToJson(column).dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  });
}

// Reads the row that the statement stands on. DATA_LOSS naming the column.
template <typename Row>
absl::Status ReadRow(Statement* statement, Row* row) {
  absl::Status status;
  VisitColumns(*row, [statement, &status]<typename Column>(const char* name, Column& column) {
    if constexpr (kIsPlain<Column>) {
      statement->Read(&column);
    } else {
      std::string text;
      statement->Read(&text);
      if (!status.ok() || !statement->status().ok()) return;
      if constexpr (std::is_enum_v<Column>) {
        const std::optional<Column> value = EnumFromName<Column>(text);
        if (!value) {
          status = absl::DataLossError(absl::StrCat("want a name that this program knows, got '", text, "'"));
        } else {
          column = *value;
        }
      } else {
        const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
        if (json.is_discarded()) status = absl::DataLossError("want JSON");
        if (status.ok()) FromJson(json, &column, &status);
      }
      if (!status.ok()) status = absl::DataLossError(absl::StrCat(name, ": ", status.message()));
    }
  });
  return statement->status().ok() ? status : statement->status();
}

// The rows of one SELECT: "SELECT <columns of Row> FROM <rest>" with the parameters bound in order.
template <typename Row, typename... Parameters>
absl::StatusOr<std::vector<Row>> SelectRows(Database* database, absl::string_view rest,
                                            const Parameters&... parameters) {
  AUTOLOCO_ASSIGN_OR_RETURN(Statement select,
                            database->Prepare(absl::StrCat("SELECT ", ColumnsSql<Row>(false), " FROM ", rest)));
  (select.Bind(parameters), ...);
  std::vector<Row> rows;
  while (true) {
    AUTOLOCO_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return rows;
    const absl::Status status = ReadRow(&select, &rows.emplace_back());
    if (!status.ok()) {
      return absl::DataLossError(
          absl::StrCat(database->path(), ": table ", rest.substr(0, rest.find(' ')), ": ", status.message()));
    }
  }
}

// Runs a statement without rows with the parameters bound in order.
template <typename... Parameters>
absl::Status RunSql(Database* database, absl::string_view sql, const Parameters&... parameters) {
  AUTOLOCO_ASSIGN_OR_RETURN(Statement statement, database->Prepare(sql));
  (statement.Bind(parameters), ...);
  return statement.Run();
}

// Writes one row, over whatever stands under its primary key.
template <typename Row>
absl::Status Upsert(Database* database, absl::string_view table, const Row& row) {
  std::string marks;
  VisitColumns(row, [&marks](const char*, const auto&) { absl::StrAppend(&marks, marks.empty() ? "?" : ", ?"); });
  AUTOLOCO_ASSIGN_OR_RETURN(
      Statement insert, database->Prepare(absl::StrCat("INSERT OR REPLACE INTO ", table, " (", ColumnsSql<Row>(false),
                                                       ") VALUES (", marks, ")")));
  BindRow(row, &insert);
  return insert.Run();
}

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_TABLE_H_
