SETS={}
