// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tacet {

// A file that is called like a box, and whose it is.
struct FoundBox {
  std::string name;  // below the root: "job/host-pid.box"
  int64_t uid = -1;
  int64_t changed_ns = 0;
  // The folder below the root that it is in, where root made that folder: the mount of a pod. Boxes of one place share
  // one quota, in turns, whatever users they are of: root in a pod can give its files to anybody.
  std::string place;
  size_t turn = 0;  // among the boxes of its user in its place, the newest first
};

struct BoxListing {
  std::vector<FoundBox> boxes;  // by name
  bool exists = false;          // the root is there
  int error = 0;                // why it cannot be read
  bool whole = true;            // false: files ran out, or a folder could not be read; what is missing may be there
  int64_t root_uid = -1;
  bool root_is_foreign_link = false;
  size_t left_out = 0;                    // boxes and folders beyond the limits
  std::map<int64_t, size_t> left_out_of;  // by user
};

struct BoxFindLimits {
  size_t most_boxes = 1024;               // handed out; users and pods take turns, newest first
  size_t most_entries_of_user = 4096;     // folders and boxes of a user, or of a pod, that are looked at
  size_t most_entries = size_t{1} << 20;  // names read
};

// Lists the boxes below a folder that anybody may write to: "job/x.box", "pod/job/x.box" (each pod mounts a folder of
// its own) and "namespace/pod/job/x.box". No link is followed; whose a file is, is what the file itself says. The root
// itself may be a link of root's or of the user who runs this.
BoxListing ListBoxes(const std::string& root, const BoxFindLimits& limits);

// The namespace of the pod that a box is of, by FoundBox's name and place ("NAMESPACE_POD" or "NAMESPACE/POD"); empty
// outside of pods.
std::string NamespaceOf(const std::string& name, const std::string& place);

// The root, or -1 with errno.
int OpenBoxRoot(const std::string& root, bool* foreign_link = nullptr);
// The folder of a box below the root, never through a link; *file becomes the last part of the name. -1 with errno.
int OpenFolderOfBox(int root, const std::string& name, std::string* file);

}  // namespace tacet
