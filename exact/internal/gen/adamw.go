package main

// adamw is the row kernel of Worker.AdamW. Its four pointers and eight floats leave temporaries 0
// to 5 on AVX2.
var adamw = row{"adamw", "x m v gradient;beta1 fresh1 beta2 fresh2 keep rate scale eps", "computes a step of AdamW; see adamwPlain.", `load 0 gradient
		mul 1 beta1 m
		mul 2 fresh1 0
		add 1 1 2
		store m 1
		mul 2 fresh2 0
		mul 2 2 0
		mul 3 beta2 v
		add 2 3 2
		store v 2
		sqrt 2 2
		mul 2 2 scale
		add 2 2 eps
		mul 1 rate 1
		div 1 1 2
		mul 0 keep x
		sub 0 0 1
		store x 0`}
