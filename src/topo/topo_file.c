/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topo_file.c - one line of a file, the names in a folder, the way from a host bridge to a function. May not know what
 * any of them is for. Called by topo_sysfs.c and topo_ports.c.
 */
#include "topo_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool topo_below(const char *folder, const char *name, char out[PATH_MAX])
{
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

bool topo_sys(const char *sysroot, char out[PATH_MAX])
{
    return topo_below(strcmp(sysroot, "/") == 0 ? "" : sysroot, "sys", out);
}

void topo_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    out[0] = '\0';
    int fd = topo_below(folder, name, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

long topo_file_number(const char *folder, const char *name, int base, long most, long other)
{
    char text[32], *end;
    topo_line(folder, name, text, sizeof(text));
    long value = strtol(text, &end, base);
    return end != text && value >= 0 && value <= most ? value : other;
}

static int topo_name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int topo_names(const char *folder, char ***out)
{
    DIR *dir = opendir(folder);
    char **names = NULL;
    int count = 0;
    if (!dir)
        return -1;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] == '.')
            continue;
        char **more = realloc(names, ((size_t)count + 1) * sizeof(*names));
        if (more)
            names = more;
        if (!more || !(names[count] = strdup(e->d_name))) {
            topo_names_free(names, count);
            closedir(dir);
            return -1;
        }
        count++;
    }
    closedir(dir);
    if (count)
        qsort(names, (size_t)count, sizeof(*names), topo_name_order);
    *out = names;
    return count;
}

void topo_names_free(char **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* What the folder of a function says of it. */
static void topo_pci_read(const char *folder, struct topo_pci *p)
{
    char text[32], *end;
    p->numa = (int)topo_file_number(folder, "numa_node", 10, INT_MAX - 1, -1);
    p->class = (unsigned)topo_file_number(folder, "class", 16, 0xffffff, 0);
    p->vendor = (uint16_t)topo_file_number(folder, "vendor", 16, 0xffff, 0);
    p->dev = (uint16_t)topo_file_number(folder, "device", 16, 0xffff, 0);
    p->width = (unsigned)topo_file_number(folder, "current_link_width", 10, 64, 0);
    topo_line(folder, "current_link_speed", text, sizeof(text)); /* "16.0 GT/s PCIe" */
    double speed = strtod(text, &end);
    if (end != text && strncmp(end, " GT/s", 5) == 0 && speed > 0 && speed < 1000)
        p->speed = (unsigned)(speed * 1000 + 0.5);
    p->link_bits = topo_pcie_bits(p->width, p->speed);
}

int topo_place(struct topo_host *host, const char *folder)
{
    char real[PATH_MAX], part[32];
    int node = -1;
    if (!realpath(folder, real))
        return -1;
    /* "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0" */
    for (char *p = real; *p;) {
        uint64_t number;
        p += strspn(p, "/");
        size_t len = strcspn(p, "/");
        snprintf(part, sizeof(part), "%.*s", (int)min_u64(len, sizeof(part) - 1), p);
        p += len;
        if (!pci_number(part, &number))
            continue; /* what is above the tree */
        unsigned before = host->nodes;
        node = topo_pci_add(host, number, node);
        if (node < 0)
            return -1;
        if (host->nodes > before && !(number & PCI_BRIDGE)) {
            char end = *p;
            *p = '\0';
            topo_pci_read(real, &host->pci[node]);
            *p = end;
        }
    }
    return node;
}
