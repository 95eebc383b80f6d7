#include "io/bag/bag_metadata.hpp"

namespace citysplat::io {

namespace {

/// As a double-quoted text of YAML.
std::string yaml_text(std::string_view text) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (c == '\n')
            out += "\\n";
        else if (code < 0x20 || code == 0x7f)
            out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
        else
            out += c;
    }
    return out + "\"";
}

}  // namespace

std::string bag_metadata(const std::string& file_name, const std::vector<BagChannel>& channels,
                         const McapSummary& summary,
                         const std::vector<std::pair<std::string, std::string>>& custom) {
    const std::string begin = std::to_string(summary.begin_ns),
                      duration = std::to_string(summary.end_ns - summary.begin_ns),
                      messages = std::to_string(summary.messages);
    std::string out =
        "rosbag2_bagfile_information:\n"
        "  version: 5\n"
        "  storage_identifier: mcap\n"
        "  duration:\n    nanoseconds: " +
        duration + "\n  starting_time:\n    nanoseconds_since_epoch: " + begin +
        "\n  message_count: " + messages + "\n  topics_with_message_count:\n";
    for (const BagChannel& channel : channels) {
        const auto found = summary.channel_messages.find(channel.id);
        out += "    - topic_metadata:\n        name: " + channel.topic +
               "\n        type: " + std::string(name_of(channel.type)) +
               "\n        serialization_format: cdr\n        offered_qos_profiles: " +
               yaml_text(qos_of(channel)) + "\n      message_count: " +
               std::to_string(found == summary.channel_messages.end() ? 0 : found->second) + "\n";
    }
    out +=
        "  compression_format: \"\"\n"
        "  compression_mode: \"\"\n"
        "  relative_file_paths:\n    - " +
        file_name + "\n  files:\n    - path: " + file_name +
        "\n      starting_time:\n        nanoseconds_since_epoch: " + begin +
        "\n      duration:\n        nanoseconds: " + duration + "\n      message_count: " + messages + "\n";
    if (!custom.empty()) out += "  custom_data:\n";
    for (const auto& [key, value] : custom) out += "    " + key + ": " + yaml_text(value) + "\n";
    return out;
}

}  // namespace citysplat::io
