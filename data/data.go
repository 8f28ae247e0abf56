// Package data keeps what a run trains on: shards of tokens, and a manifest that says what is in them down to the last bit.
//
// A data set is a directory:
//
//	manifest.json       what the set consists of; its SHA-256 is the set's identity and stands in the run's configuration
//	train-00000.bin     tokens to train on, in the order of the text
//	train-00001.bin
//	heldout-00000.bin   tokens that are never trained on, for evaluation
//	tokenizer.json      how text became tokens; its SHA-256 is in the manifest
//	leaves.bin          hashes of all chunks, for those who read a set over HTTP and check each chunk alone (OpenURL)
//
// A shard is bare tokens, little-endian, 2 or 4 bytes each, as nanoGPT and Psyche read them; all shards of a part but the last hold the same
// number. "Hi" by the byte tokenizer, with the token that ends a document:
//
//	48 00  69 00  00 00
//
// The manifest is JSON with one spelling only (see Manifest.Bytes). For each shard it has merkle.BlobRoot of the file, so that whoever offers
// the data cannot change any of it, and pieces can be checked alone:
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
// Prepare makes a data set from files, Open uses one, OpenURL one that static hosts offer over HTTP. Sequences overlap by one token, which is the last target of one and the first input of
// the next; their length is chosen when the set is opened, and their order comes from the run's seed (see Permutation), so that members who
// know only a sequence's number read the same tokens.
package data
