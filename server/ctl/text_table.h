// Text for a terminal: columns, and what came from elsewhere without its control characters.
#ifndef AUTOLOCO_SERVER_CTL_TEXT_TABLE_H_
#define AUTOLOCO_SERVER_CTL_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace autoloco::server {

// Control characters become '?'.
std::string Printable(std::string text);

using Row = std::vector<std::string>;

// Columns as wide as their widest cell, `left` says which stand to the left; the last one as it comes. A line a row.
// REQUIRES: no row is longer than `left`.
std::string Columns(const std::vector<Row>& rows, const std::vector<bool>& left);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_TEXT_TABLE_H_
