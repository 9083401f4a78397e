/* What kind of file system a path is on. A mapped file on a network is slow at best and
 * SIGBUS at worst; one in memory never waits for a disk. */
#include <errno.h>
#include <sys/statfs.h>

#include "base/compiler.h"
#include "base/os.h"

struct known {
    uint32_t magic; /* f_type */
    enum sw__os_fs kind;
    const char *name;
};

/* Numbers from linux/magic.h and from the file systems that live outside of the kernel.
 * FUSE is counted as network: sshfs, s3fs, gcsfuse and the like are what is mounted that
 * way. */
/* clang-format off */
static const struct known table[] = {
    {0x01021994, SW__FS_MEMORY, "tmpfs"},
    {0x858458F6, SW__FS_MEMORY, "ramfs"},
    {0x958458F6, SW__FS_MEMORY, "hugetlbfs"},
    {0x00006969, SW__FS_NETWORK, "nfs"},
    {0xFF534D42, SW__FS_NETWORK, "cifs"},
    {0xFE534D42, SW__FS_NETWORK, "smb2"},
    {0x0000517B, SW__FS_NETWORK, "smb"},
    {0x65735546, SW__FS_NETWORK, "fuse"},
    {0x01021997, SW__FS_NETWORK, "9p"},
    {0x5346414F, SW__FS_NETWORK, "afs"},
    {0x6B414653, SW__FS_NETWORK, "kafs"},
    {0x73757245, SW__FS_NETWORK, "coda"},
    {0x00C36400, SW__FS_NETWORK, "ceph"},
    {0x0BD00BD0, SW__FS_NETWORK, "lustre"},
    {0x47504653, SW__FS_NETWORK, "gpfs"},
    {0x7461636F, SW__FS_NETWORK, "ocfs2"},
    {0x01161970, SW__FS_NETWORK, "gfs2"},
    {0x19830326, SW__FS_NETWORK, "beegfs"},
    {0x20030528, SW__FS_NETWORK, "orangefs"},
    {0xAAD7AAEA, SW__FS_NETWORK, "panfs"},
    {0xA501FCF5, SW__FS_NETWORK, "vxfs"},
    {0x0000564C, SW__FS_NETWORK, "ncp"},
    {0x786F4256, SW__FS_NETWORK, "vboxsf"},
    {0xBACBACBC, SW__FS_NETWORK, "vmhgfs"},
    {0x0000EF53, SW__FS_LOCAL, "ext4"},
    {0x58465342, SW__FS_LOCAL, "xfs"},
    {0x9123683E, SW__FS_LOCAL, "btrfs"},
    {0x794C7630, SW__FS_LOCAL, "overlay"},
    {0x2FC12FC1, SW__FS_LOCAL, "zfs"},
    {0xF2F52010, SW__FS_LOCAL, "f2fs"},
    {0xCA451A4E, SW__FS_LOCAL, "bcachefs"},
    {0x0000F15F, SW__FS_LOCAL, "ecryptfs"},
    {0x52654973, SW__FS_LOCAL, "reiserfs"},
    {0x3153464A, SW__FS_LOCAL, "jfs"},
    {0x00003434, SW__FS_LOCAL, "nilfs2"},
    {0x00004D44, SW__FS_LOCAL, "vfat"},
    {0x2011BAB0, SW__FS_LOCAL, "exfat"},
    {0x5346544E, SW__FS_LOCAL, "ntfs"},
    {0x7366746E, SW__FS_LOCAL, "ntfs3"},
    {0x73717368, SW__FS_LOCAL, "squashfs"},
};
/* clang-format on */

enum sw__os_fs sw__os_fs_kind(const char *path, uint64_t *free_bytes, const char **name)
{
    enum sw__os_fs kind = SW__FS_UNKNOWN;
    const char *found = "unknown";
    uint64_t bytes = 0;
    struct statfs status;
    int failed;
    do {
        failed = statfs(path, &status);
    } while (failed && errno == EINTR);
    if (!failed) {
        uint64_t unit =
            status.f_frsize > 0 ? (uint64_t)status.f_frsize : (uint64_t)status.f_bsize;
        if (__builtin_mul_overflow((uint64_t)status.f_bavail, unit, &bytes)) {
            bytes = UINT64_MAX;
        }
        for (size_t i = 0; i < SW__COUNTOF(table); i++) {
            if (table[i].magic == (uint32_t)status.f_type) {
                kind = table[i].kind;
                found = table[i].name;
                break;
            }
        }
    }
    if (free_bytes) {
        *free_bytes = bytes;
    }
    if (name) {
        *name = found;
    }
    return kind;
}
