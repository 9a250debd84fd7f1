#include "coordinator/stacks/source_line.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t DEBUG_BYTES_MAX = 64 << 20;

/* Of a section in memory: libdw expands what is compressed. 0 for sections that are no debug information. */
static uint64_t debug_bytes(Elf *elf, size_t names, Elf_Scn *section)
{
	GElf_Shdr header;
	GElf_Chdr compressed;
	if (gelf_getshdr(section, &header) == NULL)
		return 0;
	const char *name = elf_strptr(elf, names, header.sh_name);
	if (name == NULL || strncmp(name, ".debug_", strlen(".debug_")) != 0)
		return 0;
	if ((header.sh_flags & SHF_COMPRESSED) == 0)
		return header.sh_size;
	return gelf_getchdr(section, &compressed) != NULL ? compressed.ch_size : UINT64_MAX;
}

static bool is_small(Elf *elf)
{
	uint64_t sum = 0;
	size_t names;
	if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *section = elf_nextscn(elf, NULL); section != NULL; section = elf_nextscn(elf, section)) {
		uint64_t bytes = debug_bytes(elf, names, section);
		if (bytes > DEBUG_BYTES_MAX - sum)
			return false;
		sum += bytes;
	}
	return sum > 0;
}

bool wlb_source_line(Dwfl_Module *module, Dwarf_Addr address, char *text, size_t size)
{
	GElf_Addr bias;
	int number = 0;
	text[0] = '\0';
	if (!is_small(dwfl_module_getelf(module, &bias)))
		return false;
	Dwfl_Line *line = dwfl_module_getsrc(module, address);
	const char *path = line != NULL ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (path == NULL || number <= 0)
		return false;
	const char *slash = strrchr(path, '/');
	snprintf(text, size, "%.40s:%d", slash != NULL ? slash + 1 : path, number);
	return true;
}
