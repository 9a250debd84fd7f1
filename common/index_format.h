/*
 * The format of Megatron-LM's .idx files (megatron/core/datasets/indexed_dataset.py), all little-endian:
 *
 *   magic            9 bytes "MMIDIDX\0\0"
 *   version          uint64, 1
 *   dtype code       uint8, of the tokens in .bin
 *   sequence count   uint64, S
 *   document count   uint64, D: one more than there are documents, for the leading 0 below
 *   lengths          int32[S], tokens of each sequence
 *   pointers         int64[S], byte offset of each sequence in .bin
 *   documents        int64[D], documents[d] .. documents[d + 1] are the sequences of document d
 *   modes            int8[S], multimodal datasets only
 *
 * The header is 34 bytes long, so that no array is aligned.
 */
#ifndef COMMON_INDEX_FORMAT_H
#define COMMON_INDEX_FORMAT_H

#define WLB_INDEX_MAGIC "MMIDIDX\0"
#define WLB_INDEX_MAGIC_BYTES 9 /* with the literal's own NUL */
#define WLB_INDEX_VERSION 1
#define WLB_INDEX_HEADER_BYTES 34

enum wlb_index_dtype {
	WLB_INDEX_UINT8 = 1,
	WLB_INDEX_INT8 = 2,
	WLB_INDEX_INT16 = 3,
	WLB_INDEX_INT32 = 4,
	WLB_INDEX_INT64 = 5,
	WLB_INDEX_UINT16 = 8, /* 6 and 7 are floating point and hold no tokens */
};

#endif
