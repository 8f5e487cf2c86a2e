/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_host_ask.c - questions of `braid run` to others: to the dynamic linker what a program would load, to Python where its
 * packages are, to a host library which release it is. Each is put by a child with a time limit, and nothing that the user's command
 * does is done. Called by cli_host.c.
 */
#include "cli_host.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLI_ASK_S = 20 /* an answer takes at most this long */ };

/** Runs a program without standard input and gives its output to read; close by cli_ask_end(). */
static FILE *cli_ask(char *const *argv, pid_t *child)
{
    int ends[2], null;
    FILE *f;

    if (pipe2(ends, O_CLOEXEC))
        return NULL;
    *child = fork();
    if (*child == 0) {
        null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(null, 2);
        alarm(CLI_ASK_S); /* survives exec */
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    f = *child < 0 ? NULL : fdopen(ends[0], "r");
    if (!f)
        close(ends[0]);
    return f;
}

static void cli_ask_end(FILE *f, pid_t child)
{
    if (f)
        fclose(f);
    if (child > 0)
        waitpid(child, NULL, 0);
}

int cli_host_which(const char *command, char *out, size_t len)
{
    const char *path = getenv("PATH");
    char *copy, *rest, *folder;
    int rc = -1;

    if (strchr(command, '/'))
        return snprintf(out, len, "%s", command) < (int)len && access(command, X_OK) == 0 ? 0 : -1;
    copy = rest = strdup(path ? path : "/usr/bin:/bin");
    while (copy && rc && (folder = strsep(&rest, ":")) != NULL) {
        if (snprintf(out, len, "%s/%s", folder[0] ? folder : ".", command) < (int)len && access(out, X_OK) == 0)
            rc = 0;
    }
    free(copy);
    return rc;
}

/* ---- ELF files ----------------------------------------------------------------------------------------------------------------- */

struct cli_elf {
    const char *at;
    size_t len;
};

/** Maps a 64-bit little-endian ELF file. 0 or -1. */
static int cli_elf_open(struct cli_elf *e, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *at = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(Elf64_Ehdr))
        at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return -1;
    *e = (struct cli_elf){at, (size_t)st.st_size};
    if (memcmp(e->at, ELFMAG, SELFMAG) == 0 && e->at[EI_CLASS] == ELFCLASS64 && e->at[EI_DATA] == ELFDATA2LSB)
        return 0;
    munmap(at, e->len);
    return -1;
}

static void cli_elf_close(struct cli_elf *e)
{
    munmap((void *)(uintptr_t)e->at, e->len);
}

/** Bytes of the file, if they are inside it. */
static const void *cli_elf_bytes(const struct cli_elf *e, uint64_t at, uint64_t n)
{
    return at <= e->len && n <= e->len - at ? e->at + at : NULL;
}

/** The i-th program header; NULL: there are no more. */
static const Elf64_Phdr *cli_elf_header(const struct cli_elf *e, unsigned i)
{
    const Elf64_Ehdr *h = cli_elf_bytes(e, 0, sizeof(*h));

    if (i >= h->e_phnum || h->e_phentsize != sizeof(Elf64_Phdr))
        return NULL;
    return cli_elf_bytes(e, h->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
}

static const Elf64_Phdr *cli_elf_segment(const struct cli_elf *e, uint32_t type)
{
    const Elf64_Phdr *p;

    for (unsigned i = 0; (p = cli_elf_header(e, i)) != NULL; i++) {
        if (p->p_type == type && cli_elf_bytes(e, p->p_offset, p->p_filesz))
            return p;
    }
    return NULL;
}

/** The string at an address of the loaded image; NULL: none. */
static const char *cli_elf_string(const struct cli_elf *e, uint64_t address)
{
    const Elf64_Phdr *p;

    for (unsigned i = 0; (p = cli_elf_header(e, i)) != NULL; i++) {
        uint64_t at = address - p->p_vaddr;
        const char *s;

        if (p->p_type != PT_LOAD || address < p->p_vaddr || at >= p->p_filesz)
            continue;
        s = cli_elf_bytes(e, p->p_offset + at, 1);
        return s && memchr(s, 0, e->len - (size_t)(s - e->at)) ? s : NULL;
    }
    return NULL;
}

/** The value of an entry of the dynamic section; 0: none. */
static uint64_t cli_elf_dynamic(const struct cli_elf *e, int64_t tag)
{
    const Elf64_Phdr *p = cli_elf_segment(e, PT_DYNAMIC);
    const Elf64_Dyn *d = p ? cli_elf_bytes(e, p->p_offset, p->p_filesz) : NULL;

    for (uint64_t i = 0; d && i < p->p_filesz / sizeof(*d) && d[i].d_tag != DT_NULL; i++) {
        if (d[i].d_tag == tag)
            return d[i].d_un.d_val;
    }
    return 0;
}

/* ---- the dynamic linker -------------------------------------------------------------------------------------------------------------- */

void cli_host_ask_linker(struct cli_host_list *list, const char *program)
{
    char linker[PATH_MAX] = "", line[2 * PATH_MAX];
    const Elf64_Phdr *p;
    struct cli_elf e;
    pid_t child = -1;
    FILE *f;

    if (cli_elf_open(&e, program))
        return;
    p = cli_elf_segment(&e, PT_INTERP);
    if (p && p->p_filesz < sizeof(linker))
        memcpy(linker, cli_elf_bytes(&e, p->p_offset, p->p_filesz), p->p_filesz);
    cli_elf_close(&e);
    if (!linker[0])
        return;
    f = cli_ask((char *const[]){linker, "--list", (char *)(uintptr_t)program, NULL}, &child);
    while (f && fgets(line, sizeof(line), f)) {
        char *arrow = strstr(line, " => "), *end = arrow ? strstr(arrow, " (0x") : NULL;

        if (!end || !strstr(line, "libnvshmem_host.so") || strstr(line, "libnvshmem_host.so") > arrow)
            continue;
        *end = '\0';
        cli_host_add(list, arrow + 4, "the program's own libraries");
    }
    cli_ask_end(f, child);
}

void cli_host_ask_rpath(struct cli_host_list *list, const char *program)
{
    char here[PATH_MAX], *paths = NULL, *rest, *folder;
    const char *own;
    struct cli_elf e;

    if (!realpath(program, here) || cli_elf_open(&e, program))
        return;
    dirname(here);
    for (int i = 0; i < 2; i++) {
        uint64_t at = cli_elf_dynamic(&e, i ? DT_RUNPATH : DT_RPATH);
        const char *s = at ? cli_elf_string(&e, cli_elf_dynamic(&e, DT_STRTAB) + at) : NULL;

        paths = rest = s ? strdup(s) : NULL;
        while (paths && (folder = strsep(&rest, ":")) != NULL) {
            char path[PATH_MAX], file[PATH_MAX + 64];

            own = strncmp(folder, "$ORIGIN", 7) == 0     ? folder + 7
                  : strncmp(folder, "${ORIGIN}", 9) == 0 ? folder + 9
                                                         : NULL;
            if (snprintf(path, sizeof(path), "%s%s", own ? here : "", own ? own : folder) >= (int)sizeof(path))
                continue;
            cli_host_add_folder(list, path, "the program's search path");
            for (int n = 1; n <= 9; n++) {
                snprintf(file, sizeof(file), "%s/nvshmem_transport_ibrc.so.%d", path, n);
                cli_host_add(list, file, "the program's search path");
            }
        }
        free(paths);
    }
    cli_elf_close(&e);
}

/* ---- Python, ldconfig --------------------------------------------------------------------------------------------------------------------- */

/** The Python of a program: the program, or what its first line names, or python3. */
static void cli_ask_interpreter(const char *program, char *out, size_t len)
{
    const char *name = strrchr(program, '/');
    char line[PATH_MAX] = "", *word, *rest = line;
    FILE *f;

    snprintf(out, len, "python3");
    name = name ? name + 1 : program;
    if (strncmp(name, "python", 6) == 0) {
        snprintf(out, len, "%s", program);
        return;
    }
    f = fopen(program, "re");
    if (f && fgets(line, sizeof(line), f) && strncmp(line, "#!", 2) == 0) {
        rest = line + 2;
        line[strcspn(line, "\n")] = '\0';
        while ((word = strsep(&rest, " ")) != NULL) {
            const char *base = strrchr(word, '/');

            if (strncmp(base ? base + 1 : word, "python", 6) == 0)
                snprintf(out, len, "%s", word);
        }
    }
    if (f)
        fclose(f);
}

void cli_host_ask_python(struct cli_host_list *list, const char *program)
{
    char python[PATH_MAX], line[PATH_MAX], path[PATH_MAX + 32];
    pid_t child = -1;
    FILE *f;

    cli_ask_interpreter(program, python, sizeof(python));
    f = cli_ask((char *const[]){python, "-c", "import sys\nfor p in sys.path: print(p)", NULL}, &child);
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, sizeof(path), "%s/nvidia/nvshmem/lib", line);
        cli_host_add_folder(list, path, "Python's packages");
    }
    cli_ask_end(f, child);
}

void cli_host_ask_ldconfig(struct cli_host_list *list)
{
    /* Not in everybody's PATH. */
    const char *program = access("/sbin/ldconfig", X_OK) == 0 ? "/sbin/ldconfig" : "ldconfig";
    char line[2 * PATH_MAX];
    pid_t child = -1;
    FILE *f = cli_ask((char *const[]){(char *)(uintptr_t)program, "-p", NULL}, &child);

    while (f && fgets(line, sizeof(line), f)) {
        char *arrow = strstr(line, " => ");

        line[strcspn(line, "\n")] = '\0';
        if (arrow && strncmp(line + strspn(line, "\t "), "libnvshmem_host.so", 18) == 0)
            cli_host_add(list, arrow + 4, "ldconfig");
    }
    cli_ask_end(f, child);
}

/* ---- a host library ------------------------------------------------------------------------------------------------------------------------- */

struct cli_answer {
    int release[3];
    char why[224];
};

/** In the child: what a host library says of itself. */
static void cli_ask_library(const char *path, struct cli_answer *a)
{
    void (*ask)(int *, int *, int *) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        snprintf(a->why, sizeof(a->why), "it cannot be loaded: %s", dlerror());
        return;
    }
    /* ISO C has no cast from object to function pointer; POSIX promises that the bytes are good. */
    memcpy(&ask, &(void *){dlsym(library, "nvshmemx_vendor_get_version_info")}, sizeof(ask));
    if (ask)
        ask(&a->release[0], &a->release[1], &a->release[2]);
    if (a->release[0] <= 0)
        snprintf(a->why, sizeof(a->why), "it does not say which release it is (nvshmemx_vendor_get_version_info)");
}

int cli_host_ask_release(const char *path, int *release, char *why, size_t len)
{
    struct cli_answer a = {.why = "it ended or hung while it was asked for its release"};
    int ends[2] = {-1, -1};
    pid_t child = -1;
    ssize_t n = 0;

    if (pipe2(ends, O_CLOEXEC) == 0)
        child = fork();
    if (child == 0) {
        alarm(CLI_ASK_S);
        a.why[0] = '\0';
        cli_ask_library(path, &a);
        _exit(write(ends[1], &a, sizeof(a)) != sizeof(a));
    }
    if (ends[1] >= 0)
        close(ends[1]);
    if (child > 0)
        do
            n = read(ends[0], &a, sizeof(a));
        while (n < 0 && errno == EINTR);
    if (ends[0] >= 0)
        close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    if (n != sizeof(a) || a.why[0]) {
        snprintf(why, len, "%s", a.why);
        return -1;
    }
    memcpy(release, a.release, sizeof(a.release));
    return 0;
}
