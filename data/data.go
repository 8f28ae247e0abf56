// Package data manages a run's training data: shards of tokens, and a manifest that identifies
// their contents down to the last bit.
//
// A data set is a directory:
//
//	manifest.json       the set's contents; its SHA-256 identifies the set in a run's configuration
//	train-00000.bin     tokens to train on, in the order of the text
//	train-00001.bin
//	heldout-00000.bin   tokens that are never trained on, for evaluation
//	tokenizer.json      how text became tokens; its SHA-256 is in the manifest
//	leaves.bin          hashes of all chunks, to check chunks read over HTTP one by one (OpenURL)
//
// A shard is bare tokens, little-endian, 2 or 4 bytes each, as nanoGPT and Psyche read them. All
// shards of a part but the last hold the same number of tokens. "Hi" in the byte tokenizer, with
// the token that ends a document:
//
//	48 00  69 00  00 00
//
// The manifest is JSON in a unique canonical form (see Manifest.Bytes). It records merkle.BlobRoot
// of each shard's file, so that a host cannot change any data undetected and pieces can be checked
// one by one:
//
//	{
//	  "version": 1,
//	  "name": "opticks",
//	  "tokenizer": {
//	    "name": "bytes",
//	    "hash": "052252588ff43a888cec798756bd1dc5895955c90ead167eb8fdee4e3c7d3dfe"
//	  },
//	  "vocab": 256,
//	  "token_bytes": 2,
//	  "shard_tokens": 16777216,
//	  "tokens": 538896,
//	  "held_out_tokens": 28304,
//	  "shards": [
//	    {
//	      "file": "train-00000.bin",
//	      "tokens": 538896,
//	      "bytes": 1077792,
//	      "root": "..."
//	    }
//	  ],
//	  "held_out": [ ... ]
//	}
//
// Several sets can be trained on in proportion to weights: see Mix.
//
// Prepare makes a data set from files, Open opens one in a directory, and OpenURL opens one that
// hosts offer. Sequences overlap by one token, the last target of one and the first input of the
// next. Their length is chosen when the set is opened. Their order comes from the run's seed (see
// order.Permutation), so members that know only a sequence's number read the same tokens.
package data
